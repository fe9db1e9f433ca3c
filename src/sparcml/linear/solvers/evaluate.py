"""Margins, losses and objectives of a model on rows that are spread over ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import DataError
from ...kernels import linear as loops

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator
    from ..data.rows import Rows
    from .objective import Loss
    from .penalty import Penalty


def opened(rows: Rows) -> loops.Csr:
    """The rows as the compiled loops take them."""
    weights = loops.NO_WEIGHTS if rows.weights is None else rows.weights
    return loops.Csr(rows.indptr, rows.indices, rows.values, rows.labels, weights)


def check_rows(rows: Rows, loss: Loss) -> None:
    """Look at what the loops rely on: columns in order, and labels that fit the loss."""
    row = loops.first_invalid_row(rows.indptr, rows.indices, rows.features)
    if row < len(rows):
        raise DataError(
            f"row {rows.first + row}: columns must ascend and be below {rows.features}"
        )
    if loss.signs and (bad := np.flatnonzero(np.abs(rows.labels) != 1)).size:
        raise DataError(
            f"row {rows.first + bad[0]}: labels must be -1 or 1 for the loss {loss.name}, "
            f"got {rows.labels[bad[0]]:g}"
        )


def margins(
    rows: Rows, weights: NDArray[Any], intercept: float = 0.0
) -> NDArray[np.float64]:
    """w.x + b of this rank's rows, which `check_rows` has looked at."""
    fitting = np.ascontiguousarray(weights, rows.values.dtype)
    if fitting.size != rows.features:
        raise ValueError(
            f"margins: the rows have {rows.features} features, the model {fitting.size}"
        )
    return loops.margins(opened(rows), fitting) + intercept


def mean_loss(
    comm: Communicator,
    rows: Rows,
    loss: Loss,
    weights: NDArray[Any],
    intercept: float = 0.0,
) -> float:
    """The mean over all ranks' rows of weight * loss; a collective call."""
    found = loss.value(margins(rows, weights, intercept), rows.labels)
    total = found.sum() if rows.weights is None else np.vdot(rows.weights, found)
    both = comm.allreduce(np.array([total, len(rows)], np.float64))
    return float(both[0] / both[1]) if both[1] else 0.0


def objective(
    comm: Communicator,
    rows: Rows,
    loss: Loss,
    penalty: Penalty,
    weights: NDArray[Any],
    intercept: float = 0.0,
) -> float:
    """What the solvers make small: the mean loss and the penalty; a collective call."""
    return mean_loss(comm, rows, loss, weights, intercept) + penalty.value(weights)
