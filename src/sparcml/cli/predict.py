"""`sparcml predict`: predictions of a model for the rows of LIBSVM files."""

import sys
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import IO, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from sparcml.cli.console import (
    check_inputs,
    check_output,
    input_files,
    label_text,
    loss_text,
)
from sparcml.errors import DataError
from sparcml.files import replacing
from sparcml.linear import LOSSES, Rows, read_svmlight
from sparcml.linear.data.labels import one_vs_rest
from sparcml.linear.training.model import Model

Doubles = NDArray[np.float64]

COMMAND = "sparcml predict"
CHUNK_LINES = 1 << 16
SHOWN = 5  # classes


class Output(StrEnum):
    """The numbers that are written for each row."""

    LABELS = "labels"
    MARGINS = "margins"
    PROBABILITIES = "probabilities"


def predict(
    model: Annotated[Path, typer.Argument(help="Model file of sparcml fit.")],
    files: Annotated[
        list[Path],
        typer.Argument(help="LIBSVM files, folders of them, or - for standard input."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File to write instead of standard output."),
    ] = None,
    what: Annotated[
        Output,
        typer.Option(
            help="Numbers to write; margins and probabilities of the second of two classes, "
            "or of all classes."
        ),
    ] = Output.LABELS,
) -> None:
    """Write one prediction per line, and print the accuracy on the labels of the text.

    For more than two classes, a line of margins or probabilities has one number per class, in
    ascending order of their labels.
    """
    paths = input_files(files)
    check_inputs([model, *paths])
    if out is not None:
        check_output("--out", out, [model, *paths])
    try:
        loaded = Model.load(model)
        rows, note = _read(loaded, paths)
        margins = loaded.margins(rows)
        _write(out, _predictions(loaded, margins, what))
    except (DataError, OSError) as error:
        raise type(error)(f"{COMMAND}: {error}") from None
    typer.echo(_score(loaded, rows, margins) + note, err=True)


def _read(model: Model, paths: list[Path]) -> tuple[Rows, str]:
    """Return the rows, without features that the model lacks, and a note about these."""
    rows = read_svmlight(paths, zero_based=model.zero_based, dtype=model.weights.dtype)
    known = rows.resized(model.features)
    if known.nnz == rows.nnz:
        return known, ""
    unknown = np.unique(rows.indices[rows.indices >= model.features]).size
    return known, (
        f"; ignored {rows.nnz - known.nnz:,} values of {unknown:,} features that the model "
        f"lacks"
    )


def _predictions(model: Model, margins: Doubles, what: Output) -> NDArray[Any]:
    if what is Output.MARGINS:
        return margins
    if what is Output.LABELS:
        return model.labels(margins)[:, None]
    try:
        probabilities = model.probabilities(margins)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return probabilities[:, 1:] if probabilities.shape[1] == 2 else probabilities


def _write(out: Path | None, numbers: NDArray[Any]) -> None:
    output = nullcontext(sys.stdout.buffer) if out is None else replacing(out)
    try:
        with output as file:
            _write_lines(file, numbers)
    except OSError as error:
        if out is None:
            raise
        raise OSError(f"{out}: {error.strerror}; an existing file is unchanged") from None


def _write_lines(file: IO[bytes], numbers: NDArray[Any]) -> None:
    form = "s" if numbers.dtype.kind == "U" else ".9g"
    for start in range(0, len(numbers), CHUNK_LINES):
        part = numbers[start : start + CHUNK_LINES].tolist()
        lines = (" ".join(format(number, form) for number in row) for row in part)
        file.write("".join(f"{line}\n" for line in lines).encode())
    file.flush()


def _score(model: Model, rows: Rows, margins: Doubles) -> str:
    """Return the accuracy and loss on the rows with labels of the model's classes."""
    loss = LOSSES[model.loss]
    if model.classes is None:
        mean = loss.value(margins[:, 0], rows.labels).mean()
        return f"{len(rows):,} rows, mean {loss.name} loss {loss_text(mean)}"
    classes, given = np.array(model.classes), rows.labels.astype(object)
    if rows.label_names is not None:
        given = np.array(rows.label_names, object)[rows.labels.astype(np.int64)]
    labelled = np.isin(given, classes.astype(object))
    if not labelled.any():
        few = " or ".join(map(label_text, model.classes[:SHOWN]))
        return f"{len(rows):,} rows, none labelled {few}{' ...' * (classes.size > SHOWN)}"
    labels, margins = given[labelled].astype(classes.dtype), margins[labelled]
    accuracy = np.mean(model.labels(margins) == labels)
    codes = np.searchsorted(classes, labels)
    signs = [one_vs_rest(codes, classes.size, k) for k in range(margins.shape[1])]
    mean = loss.value(margins, np.column_stack(signs)).mean()
    count = f"{len(rows):,} rows"
    if unknown := int(np.count_nonzero(~labelled)):
        count = f"{labels.size:,} of {count} ({unknown:,} with labels that the model lacks)"
    more = f" over {classes.size} one-vs-rest models" if classes.size > 2 else ""
    return (
        f"{count}, accuracy {accuracy:.2%}, mean {loss.name} loss {loss_text(mean)}{more}"
    )
