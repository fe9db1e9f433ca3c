"""The rows that a model is made of: read, divided, and looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sparcml.errors import DataError
from sparcml.linear import LOSSES, Rows, read_svmlight
from sparcml.linear.divide import divide
from sparcml.linear.signs import signs

if TYPE_CHECKING:
    from sparcml import Communicator
    from sparcml.cli.training.settings import Settings


class Data(NamedTuple):
    """One rank's rows, and what is known about all.

    Attributes:
        train: To learn from.
        held_out: To be judged by, if some are.
        classes: The labels that -1 and 1 stand for.
        zero_based: Whether indices in the text start at 0.
        entries: Of all ranks' rows.
        square: The mean of rows' squared lengths.
    """

    train: Rows
    held_out: Rows | None
    classes: tuple[float, float] | None
    zero_based: bool
    entries: int
    square: float

    def about(self) -> dict[str, Any]:
        """By what data are known again."""
        held = 0 if self.held_out is None else self.held_out.total
        return {
            "rows": self.train.total + held,
            "entries": self.entries,
            "features": self.train.features,
            "classes": None if self.classes is None else list(self.classes),
        }


def load(comm: Communicator, settings: Settings) -> Data:
    """Read and divide; a collective call.

    Raises:
        DataError: On all ranks, if there is something that no solver can work with.
    """
    rows, zero_based = _read(comm, settings)
    if rows.total < comm.size:
        raise DataError(
            f"{settings.files[0]}: {rows.total} rows for {comm.size} ranks: start at most "
            f"{rows.total}"
        )
    classes = None
    if LOSSES[settings.loss].signs:
        rows, classes = signs(comm, rows)
    squares = np.vdot(rows.values, rows.values)
    entries, square = comm.allreduce(np.array([rows.nnz, squares], np.float64))
    train, held_out = rows, None
    if settings.held_out:
        train, held_out = divide(comm, rows, settings.held_out, settings.seed)
    return Data(
        train, held_out, classes, zero_based, int(entries), float(square) / rows.total
    )


def _read(comm: Communicator, settings: Settings) -> tuple[Rows, bool]:
    """The rows, and whether indices start at 0: so they do if one of them is 0."""
    cache = "user" if settings.cache else None

    def read(zero_based: Any) -> Rows:
        return read_svmlight(
            settings.files,
            comm,
            features=settings.features,
            zero_based=zero_based,
            cache=cache,  # type: ignore[arg-type]  # a literal
        )

    if settings.zero_based is not None:
        return read(settings.zero_based), settings.zero_based
    try:
        return read(False), False
    except DataError:
        return read("auto"), True  # or what else is wrong


def usual_rate(loss: str, square: float) -> float:
    """A rate that makes steps neither timid nor wild: 1 / (curvature * squared length).

    Of three digits, so that it does not depend on the number of ranks.
    """
    curvature = LOSSES[loss].curvature or 1.0
    return float(f"{1.0 / (curvature * square):.3g}") if square else 1.0
