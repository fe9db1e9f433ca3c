"""What the ranks of a fit must agree on before it begins; all calls are collective."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_random_state

from ...communicator.arguments import resolve_timeout
from ...communicator.collective_errors import gather
from ...communicator.communicator import Communicator
from ...errors import DataError
from ...transport import ThreadGroup, ThreadTransport
from ..data.rows import Rows
from ..data.shuffle import permuted_positions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Doubles = NDArray[np.float64]

WHOLE = 2**31 - 1  # the largest seed
HELD_OUT = 2**32  # of the orders of rows, one that no pass has


def alone() -> Communicator:
    """A world of one, also in a process that a launcher has started with others."""
    return Communicator(ThreadTransport(ThreadGroup(1), 0, resolve_timeout(None)))


def common_seed(comm: Communicator, random_state: Any) -> int:
    """One seed for all ranks: what rank 0 draws."""
    drawn = float(check_random_state(random_state).randint(WHOLE))
    return int(gather(comm, drawn)[0, 0])


def common_shape(comm: Communicator, X: Any) -> Any:
    """X, in float64 if any rank has that.

    Raises:
        DataError: If ranks have different numbers of features, or all ranks together fewer
            rows than there are ranks.
    """
    about = gather(comm, X.shape[0], X.shape[1], X.dtype != np.float32)
    total, features = int(about[:, 0].sum()), about[:, 1].astype(int)
    if (features != features[0]).any():
        other = int(np.flatnonzero(features != features[0])[0])
        raise DataError(
            f"rank 0 has rows of {features[0]} features, rank {other} of "
            f"{features[other]}; declare the same number on all ranks"
        )
    if total < comm.size:
        raise DataError(
            f"{total} rows are fewer than {comm.size} ranks (those of zero weight do not "
            f"count); take fewer ranks or more rows"
        )
    return X.astype(np.float64, copy=False) if about[:, 2].any() else X


def common_rows(comm: Communicator, X: Any, weights: Doubles | None) -> tuple[Rows, float]:
    """This rank's rows, numbered over all ranks, and what all ranks' rows weigh.

    Weights are scaled to 1 on average, so that a solver's mean is the weighted mean.
    """
    mine = float(X.shape[0] if weights is None else weights.sum())
    about = gather(comm, X.shape[0], mine, weights is not None)
    counts, mass = about[:, 0].astype(int), float(about[:, 1].sum())
    first, total = int(counts[: comm.rank].sum()), int(counts.sum())
    if about[:, 2].any():  # on any rank
        ones = np.ones(X.shape[0]) if weights is None else weights
        weights = ones * (total / mass)
    return replace(Rows.of(X, weights=weights), first=first, total=total), mass


def centred(
    comm: Communicator, X: Any, weights: Doubles | None
) -> tuple[Any, Doubles | None]:
    """X around the mean row, and that row; X alone if half of it or more is zero.

    Beside an intercept that is not penalised this changes nothing about the optimum, but
    the way there is many times shorter: coordinates no longer pull at the intercept.
    """
    stored = float(X.nnz if issparse(X) else np.count_nonzero(X))
    stored, cells = gather(comm, stored, X.shape[0] * X.shape[1]).sum(axis=0)
    if stored <= cells / 2:
        return X, None
    X = X.toarray() if issparse(X) else X
    ones = np.ones(X.shape[0]) if weights is None else weights
    sums = comm.allreduce(np.array([*(ones @ X.astype(np.float64)), ones.sum()]))
    means = sums[:-1] / sums[-1]
    moved = (X - means).astype(X.dtype)
    # What is left of a constant column is rounding, which must not become a feature.
    moved[np.abs(moved) <= 8 * np.finfo(X.dtype).eps * np.abs(means)] = 0.0
    return moved, means


def held_out(
    comm: Communicator, count: int, fraction: float, seed: int
) -> NDArray[np.bool_]:
    """Which of this rank's rows to hold out, the same ones on any number of ranks.

    Raises:
        DataError: If none, or all, would be held out.
    """
    counts = gather(comm, count)[:, 0].astype(int)
    first, total = int(counts[: comm.rank].sum()), int(counts.sum())
    wanted = round(fraction * total)
    if not 0 < wanted < total:
        raise DataError(
            f"validation_fraction {fraction} of {total} rows is {wanted}; there must be "
            f"some, and others to learn from"
        )
    numbers = np.arange(first, first + count, dtype=np.int64)
    return permuted_positions(numbers, total, seed, HELD_OUT) < wanted


def common_classes(comm: Communicator, y: NDArray[Any]) -> NDArray[Any]:
    """The labels of all ranks, each once, in order."""
    mine = np.unique(y)
    if comm.size == 1:
        return mine
    found = [json.loads(text) for text in _texts(comm, json.dumps(mine.tolist()))]
    kinds = {isinstance(label, str) for labels in found for label in labels}
    if len(kinds) > 1:
        raise DataError("labels are text on some ranks and numbers on others")
    labels = [label for labels in found for label in labels]
    return np.unique(np.array(labels, object if mine.dtype.kind == "O" else None))


def _texts(comm: Communicator, mine: str) -> list[str]:
    """Every rank's text; only floats travel between ranks, one a byte."""
    sent = np.frombuffer(mine.encode(), np.uint8).astype(np.float32)
    return [got.astype(np.uint8).tobytes().decode() for got in comm.allgather(sent)]
