"""Inputs of a fit: checks of the settings, and rows and seeds that the ranks agree on."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_random_state

from ... import decentralized
from ...aggregate import Method
from ...communicator.collective_errors import allgather_numbers
from ...communicator.communicator import Communicator
from ...errors import DataError
from ...transport import ThreadGroup, ThreadTransport
from ..data.rows import Rows
from ..data.shuffle import SPLIT_OF_ESTIMATORS, validation_mask
from ..solvers.learning_rate import LearningRate
from ..solvers.objective import loss_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Doubles = NDArray[np.float64]

SOLVERS = ("auto", "scd", "sgd")
SPARSE = 0.1  # density up to which rows are sparse
MAX_SEED = 2**31 - 1
INTEGERS = ("max_iter", "n_iter_no_change", "batch_size")
INSTANCES = {
    "learning_rate": (LearningRate,),
    "method": (Method, decentralized.Method),
}


# ---- settings ----


def check_settings(estimator: Any) -> None:
    """Raise ValueError or TypeError for invalid settings; scikit-learn expects it in `fit`."""
    name = type(estimator).__name__
    if estimator.solver not in SOLVERS:
        raise ValueError(
            f"{name}: solver must be one of {', '.join(SOLVERS)}, got {estimator.solver!r}"
        )
    for setting in INTEGERS:
        value = getattr(estimator, setting)
        if setting == "batch_size" and value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise TypeError(f"{name}: {setting} must be an integer, got {value!r}")
        if int(value) < 1:
            raise ValueError(f"{name}: {setting} must be >= 1, got {value!r}")
    if estimator.tol is not None:
        check_number(estimator, "tol")
    check_number(estimator, "validation_fraction", positive=True)
    if estimator.validation_fraction >= 1:
        raise ValueError(
            f"{name}: validation_fraction must be < 1, got {estimator.validation_fraction!r}"
        )
    for setting, expected in INSTANCES.items():
        value = getattr(estimator, setting)
        if value is not None and not isinstance(value, expected):
            raise TypeError(
                f"{name}: {setting} must be a {expected[0].__name__}, got {value!r}"
            )


def check_number(estimator: Any, setting: str, *, positive: bool = False) -> None:
    """Raise unless a setting is a number >= 0, or > 0."""
    name, value = type(estimator).__name__, getattr(estimator, setting)
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}: {setting} must be a number, got {value!r}")
    if not (float(value) > 0 or (value == 0 and not positive)):
        bound = "> 0" if positive else ">= 0"
        raise ValueError(f"{name}: {setting} must be {bound}, got {value!r}")


def choose_solver(estimator: Any, loss: str) -> str:
    """Return the solver that is set; for "auto", scd unless a setting requires sgd."""
    only_sgd = settings_of_sgd(estimator, loss)
    if estimator.solver == "scd" and only_sgd:
        raise ValueError(
            f"{type(estimator).__name__}: solver must be 'sgd' with {' and '.join(only_sgd)}, "
            f"got 'scd'"
        )
    if estimator.solver == "auto":
        return "sgd" if only_sgd else "scd"
    return str(estimator.solver)


def settings_of_sgd(estimator: Any, loss: str) -> list[str]:
    """Return what is set that scd cannot do."""
    requirements = {
        f"the loss {loss}": loss_of(loss).curvature is None,
        "method": estimator.method is not None,
        "early_stopping": bool(estimator.early_stopping),
    }
    return [setting for setting, holds in requirements.items() if holds]


# ---- rows; all functions are collective ----


def single_rank() -> Communicator:
    """Return a world of one, also in a process that a launcher started with others."""
    return Communicator(ThreadTransport(ThreadGroup(1), 0))


def common_seed(comm: Communicator, random_state: Any) -> int:
    """Draw a seed on rank 0 and broadcast it."""
    drawn = float(check_random_state(random_state).randint(MAX_SEED))
    return int(allgather_numbers(comm, drawn)[0, 0])


def common_dtype(comm: Communicator, X: Any) -> Any:
    """Return X, in float64 if any rank has float64.

    Raises:
        DataError: If ranks have different numbers of features, or there are fewer rows than
            ranks.
    """
    table = allgather_numbers(comm, X.shape[0], X.shape[1], X.dtype != np.float32)
    total, features = int(table[:, 0].sum()), table[:, 1].astype(int)
    if (features != features[0]).any():
        other = int(np.flatnonzero(features != features[0])[0])
        raise DataError(
            f"all ranks must have the same number of features, got {features[0]} on rank 0 "
            f"and {features[other]} on rank {other}"
        )
    if total < comm.size:
        raise DataError(
            f"there must be a row per rank, got {total} rows of nonzero weight for "
            f"{comm.size} ranks"
        )
    return X.astype(np.float64, copy=False) if table[:, 2].any() else X


def number_rows(comm: Communicator, X: Any, weights: Doubles | None) -> tuple[Rows, float]:
    """Return this rank's rows, numbered over all ranks, and the weight of all ranks' rows.

    Weights are scaled to a mean of 1, so that a solver's mean is the weighted mean.
    """
    own = float(X.shape[0] if weights is None else weights.sum())
    table = allgather_numbers(comm, X.shape[0], own, weights is not None)
    counts, mass = table[:, 0].astype(int), float(table[:, 1].sum())
    first, total = int(counts[: comm.rank].sum()), int(counts.sum())
    if table[:, 2].any():  # on any rank
        ones = np.ones(X.shape[0]) if weights is None else weights
        weights = ones * (total / mass)
    return replace(Rows.of(X, weights=weights), first=first, total=total), mass


def center(
    comm: Communicator, X: Any, weights: Doubles | None
) -> tuple[Any, Doubles | None]:
    """Return X minus its mean row, and that row; X itself if at least half of it is zero.

    With an intercept, which is not penalised, the optimum stays the same, and convergence is
    many times faster: coordinates no longer interact with the intercept.
    """
    nnz = float(X.nnz if issparse(X) else np.count_nonzero(X))
    nnz, size = allgather_numbers(comm, nnz, X.shape[0] * X.shape[1]).sum(axis=0)
    if nnz <= size / 2:
        return X, None
    X = X.toarray() if issparse(X) else X
    ones = np.ones(X.shape[0]) if weights is None else weights
    sums = comm.allreduce(np.array([*(ones @ X.astype(np.float64)), ones.sum()]))
    means = sums[:-1] / sums[-1]
    centered = (X - means).astype(X.dtype)
    # A constant column leaves rounding errors, which must not become a feature.
    centered[np.abs(centered) <= 8 * np.finfo(X.dtype).eps * np.abs(means)] = 0.0
    return centered, means


def column_spread(comm: Communicator, X: Any) -> float:
    """Return the ratio of the largest column's magnitude to the smallest's; 1 if X is sparse.

    Both the maximum and the root mean square differ by it: columns that are alike but for
    their number of zeros have a small spread.
    """
    nnz = float(X.nnz if issparse(X) else np.count_nonzero(X))
    nnz, size = allgather_numbers(comm, nnz, X.shape[0] * X.shape[1]).sum(axis=0)
    if nnz <= SPARSE * size:
        return 1.0
    X = X.toarray() if issparse(X) else X
    largest = np.maximum(X.max(axis=0, initial=0.0), -X.min(axis=0, initial=0.0))
    largest = comm.allreduce(largest.astype(np.float64), op="max")
    active = largest > 0
    largest, X = largest[active], X[:, active]
    with np.errstate(under="ignore"):
        squares = comm.allreduce(np.square(X / largest).sum(axis=0, dtype=np.float64))
        norms = largest * np.sqrt(squares)
        return float(min(each.max() / each.min() for each in (largest, norms)))


def split_rows(
    comm: Communicator, count: int, fraction: float, seed: int
) -> NDArray[np.bool_]:
    """Return which of this rank's `count` rows are in the validation set."""
    counts = allgather_numbers(comm, count)[:, 0].astype(int)
    first, total = int(counts[: comm.rank].sum()), int(counts.sum())
    return validation_mask(first, count, total, fraction, seed, SPLIT_OF_ESTIMATORS)


def check_columns(X: Any) -> None:
    """Raise DataError if a column of a CSR matrix is outside its shape."""
    if X.nnz and not 0 <= X.indices.min() <= X.indices.max() < X.shape[1]:
        raise DataError(
            f"columns must be 0 to {X.shape[1] - 1}, as the shape of X says, got "
            f"{X.indices.min()} to {X.indices.max()}"
        )
