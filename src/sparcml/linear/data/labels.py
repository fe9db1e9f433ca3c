"""Labels of any names as numbers of classes, and each class against all others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator
    from .rows import Rows

    Doubles = NDArray[np.float64]

SHOWN = 5


def encode_labels(comm: Communicator, rows: Rows) -> tuple[Rows, tuple[float, ...]]:
    """The rows with labels 0, 1, 2, ..., and the labels that these stand for; collective.

    Raises:
        DataError: On all ranks, if they have fewer than two labels together, or many that
            are no whole numbers, which are to be predicted as numbers.
    """
    found = np.unique(np.concatenate(comm.allgather(np.unique(rows.labels))))
    some = ", ".join(f"{label:g}" for label in found[:SHOWN]) + ", ..." * (
        found.size > SHOWN
    )
    if found.size < 2:
        raise DataError(
            f"labels of one class ({some}): two are needed; numbers to be predicted need the "
            f"loss squared"
        )
    if found.size > 2 and (found != np.round(found)).any():
        raise DataError(
            f"labels that are no whole numbers ({some}): these are no classes; numbers to be "
            f"predicted need the loss squared"
        )
    codes = np.searchsorted(found, rows.labels).astype(np.float64)
    return replace(rows, labels=codes), tuple(found.tolist())


def targets(classes: int) -> int:
    """Models that it takes to tell so many classes."""
    return 1 if classes == 2 else classes


def one_vs_rest(codes: NDArray[Any], classes: int, target: int) -> Doubles:
    """1 for the rows of a class and -1 for all others; of two classes, for the second."""
    return np.where(codes == (1 if classes == 2 else target), 1.0, -1.0)


def balanced(
    comm: Communicator, codes: NDArray[np.int64], classes: int, weights: Doubles | None
) -> Doubles:
    """What rows of each class must count for all classes to weigh the same; collective."""
    mine = np.bincount(codes, weights, minlength=classes).astype(np.float64)
    masses = comm.allreduce(mine)
    found: Doubles = masses.sum() / (classes * np.where(masses, masses, 1.0))
    return found
