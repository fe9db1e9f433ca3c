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
from sparcml.linear import LOSSES, Rows, read_svmlight
from sparcml.linear.model import Model
from sparcml.linear.write import replacing

Doubles = NDArray[np.float64]

COMMAND = "sparcml predict"
AT_ONCE = 1 << 16  # lines


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
        What, typer.Option(help="Of the second class, with a logistic loss: probabilities.")
    ] = What.LABELS,
) -> None:
    """Write a prediction a line, and say how many of the text's labels are met."""
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
        return known.labels(margins)
    try:
        return known.probabilities(margins)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


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
    for start in range(0, numbers.size, AT_ONCE):
        part = numbers[start : start + AT_ONCE].tolist()
        file.write("".join(f"{number:.9g}\n" for number in part).encode())
    file.flush()


def _score(known: Model, rows: Rows, margins: Doubles) -> str:
    """By the labels in the text, as far as the model knows them."""
    loss = LOSSES[known.loss]
    if known.classes is None:
        mean = loss.value(margins, rows.labels).mean()
        return f"{len(rows):,} rows, mean {loss.name} loss {mean:.6f}"
    low, high = known.classes
    known_rows = np.isin(rows.labels, known.classes)
    if not known_rows.any():
        return f"{len(rows):,} rows, none labelled {low:g} or {high:g}"
    signs = np.where(rows.labels[known_rows] == high, 1.0, -1.0)
    margins = margins[known_rows]
    right = np.mean((margins > 0) == (signs > 0))
    mean = loss.value(margins, signs).mean()
    count = (
        f"{signs.size:,} of {len(rows):,}" if signs.size < len(rows) else f"{len(rows):,}"
    )
    return f"{count} rows, {right:.2%} right, mean {loss.name} loss {mean:.6f}"
