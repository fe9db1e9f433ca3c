"""The rows that a model is made of: read, weighed, divided, and looked at."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sparcml.errors import DataError
from sparcml.linear import LOSSES, Rows, read_svmlight
from sparcml.linear.data.divide import train_validation_split
from sparcml.linear.data.labels import encode_labels, one_vs_rest, targets
from sparcml.linear.solvers.lengths import squared_row_norms
from sparcml.linear.training.weights import apply_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sparcml import Communicator
    from sparcml.linear.training.config import TrainingConfig

    Doubles = NDArray[np.float64]


class Data(NamedTuple):
    """One rank's rows, and what is known about all.

    Attributes:
        train: To learn from; labels are numbers of classes, if there are classes.
        held_out: To be judged by, if some are.
        classes: The labels in the text, ascending.
        entries: Of all ranks' rows.
        square: The mean of rows' squared lengths.
    """

    train: Rows
    held_out: Rows | None
    classes: tuple[float, ...] | None
    entries: int
    square: float

    @property
    def targets(self) -> int:
        """Models to make."""
        return 1 if self.classes is None else targets(len(self.classes))

    def signs(self, labels: Doubles, k: int) -> Doubles:
        """What a target's solver wants as labels."""
        return labels if self.classes is None else one_vs_rest(labels, len(self.classes), k)

    def target(self, k: int) -> tuple[Rows, Rows | None]:
        """The rows with the labels of a target."""
        train = replace(self.train, labels=self.signs(self.train.labels, k))
        if self.held_out is None:
            return train, None
        return train, replace(self.held_out, labels=self.signs(self.held_out.labels, k))

    def about(self) -> dict[str, Any]:
        """By what data are known again."""
        held = 0 if self.held_out is None else self.held_out.total
        return {
            "rows": self.train.total + held,
            "entries": self.entries,
            "features": self.train.features,
            "classes": None if self.classes is None else list(self.classes),
            "weighted": self.train.weights is not None,
        }


def load(comm: Communicator, settings: TrainingConfig) -> Data:
    """Read, weigh and divide; a collective call.

    Raises:
        DataError: On all ranks, if there is something that no solver can work with.
    """
    rows = read_svmlight(
        settings.files,
        comm,
        features=settings.features,
        zero_based="auto" if settings.zero_based is None else settings.zero_based,
        cache="user" if settings.cache else None,
    )
    classes = None
    if LOSSES[settings.loss].signs:
        rows, classes = encode_labels(comm, rows)
    rows = apply_weights(comm, rows, classes, settings)
    if rows.total < comm.size:
        raise DataError(
            f"{settings.files[0]}: {rows.total} rows for {comm.size} ranks: start at most "
            f"{rows.total}"
        )
    squares = squared_row_norms(rows).sum()
    entries, square = comm.allreduce(np.array([rows.nnz, squares], np.float64))
    train, held_out = rows, None
    if settings.validation_fraction:
        train, held_out = train_validation_split(
            comm, rows, settings.validation_fraction, settings.seed
        )
    return Data(train, held_out, classes, int(entries), float(square) / rows.total)


def usual_rate(loss: str, square: float) -> float:
    """A rate that makes steps neither timid nor wild: 1 / (curvature * squared length).

    Of three digits, so that it does not depend on the number of ranks.
    """
    curvature = LOSSES[loss].curvature or 1.0
    return float(f"{1.0 / (curvature * square):.3g}") if square else 1.0
