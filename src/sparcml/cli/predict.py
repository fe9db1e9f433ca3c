"""`sparcml predict`: what a model says about rows of LIBSVM text."""

import sys
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import IO, Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from sparcml.errors import DataError
from sparcml.files import replacing
from sparcml.linear import LOSSES, Rows, read_svmlight
from sparcml.linear.data.labels import one_vs_rest
from sparcml.linear.training.model import Model

Doubles = NDArray[np.float64]

COMMAND = "sparcml predict"
AT_ONCE = 1 << 16  # lines
SHOWN = 5  # classes


class What(StrEnum):
    """What is written for each row."""

    LABELS = "labels"
    MARGINS = "margins"
    PROBABILITIES = "probabilities"


def predict(
    model: Annotated[Path, typer.Argument(help="That sparcml fit has written.")],
    files: Annotated[list[Path], typer.Argument(help="LIBSVM text, or folders of it.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write there, not to the output.")
    ] = None,
    what: Annotated[
        What,
        typer.Option(
            help="Margins and probabilities: of the second of two classes, or of all."
        ),
    ] = What.LABELS,
) -> None:
    """Write a prediction a line, and say how many of the text's labels are met.

    Of more than two classes, a line of margins or probabilities has a number for each, in
    ascending order of their labels.
    """
    try:
        known = Model.load(model)
        rows = _read(known, model, files)
        margins = known.margins(rows)
        numbers = _asked(known, margins, what)
        _write(out, numbers)
    except (DataError, OSError) as error:
        raise type(error)(f"{COMMAND}: {error}") from None
    typer.echo(_score(known, rows, margins), err=True)


def _read(known: Model, path: Path, files: list[Path]) -> Rows:
    try:
        return read_svmlight(
            files,
            features=known.features,
            zero_based=known.zero_based,
            dtype=known.weights.dtype,
        )
    except DataError as error:
        raise DataError(
            f"{error} (the model {path} has {known.features} features)"
        ) from None


def _asked(known: Model, margins: Doubles, what: What) -> Doubles:
    if what is What.MARGINS:
        return margins
    if what is What.LABELS:
        return known.labels(margins)[:, None]
    try:
        found = known.probabilities(margins)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return found[:, 1:] if found.shape[1] == 2 else found


def _write(out: Path | None, numbers: Doubles) -> None:
    place = nullcontext(sys.stdout.buffer) if out is None else replacing(out)
    try:
        with place as file:
            _lines(file, numbers)
    except OSError as error:
        if out is None:
            raise
        raise OSError(
            f"{out}: {error.strerror}; what was there before is as it was"
        ) from None


def _lines(file: IO[bytes], numbers: Doubles) -> None:
    for start in range(0, len(numbers), AT_ONCE):
        part = numbers[start : start + AT_ONCE].tolist()
        lines = (" ".join(f"{number:.9g}" for number in row) for row in part)
        file.write("".join(f"{line}\n" for line in lines).encode())
    file.flush()


def _score(known: Model, rows: Rows, margins: Doubles) -> str:
    """By the labels in the text, as far as the model knows them."""
    loss = LOSSES[known.loss]
    if known.classes is None:
        mean = loss.value(margins[:, 0], rows.labels).mean()
        return f"{len(rows):,} rows, mean {loss.name} loss {mean:.6f}"
    classes = np.array(known.classes)
    told = np.isin(rows.labels, classes)
    if not told.any():
        few = " or ".join(f"{label:g}" for label in classes[:SHOWN])
        return f"{len(rows):,} rows, none labelled {few}{' ...' * (classes.size > SHOWN)}"
    labels, margins = rows.labels[told], margins[told]
    right = np.mean(known.labels(margins) == labels)
    codes = np.searchsorted(classes, labels)
    signs = [one_vs_rest(codes, classes.size, k) for k in range(margins.shape[1])]
    mean = loss.value(margins, np.column_stack(signs)).mean()
    count = f"{len(rows):,}" if told.all() else f"{labels.size:,} of {len(rows):,}"
    more = f" a class (of {classes.size})" if classes.size > 2 else ""
    return f"{count} rows, {right:.2%} right, mean {loss.name} loss {mean:.6f}{more}"
