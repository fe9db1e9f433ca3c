"""All ranks' rows together must be one matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...errors import MismatchError

if TYPE_CHECKING:
    from ...communicator.communicator import Communicator
    from .rows import Rows


def check_partition(comm: Communicator, rows: Rows, known: bool = False) -> bool:
    """Raise unless the ranks' rows are all rows, each once, of the same matrix.

    Returns:
        Whether they are known on all ranks.
    """
    mine = [rows.first, len(rows), rows.total, rows.features, rows.values.dtype.itemsize]
    shares = np.array(comm.allgather(np.array([*mine, known], np.float64)))
    agreed = bool(shares[:, -1].all())
    shares = shares[:, :-1]
    ends = shares[:, 0] + shares[:, 1]
    at = np.concatenate(([0.0], ends[:-1]))
    if (shares[:, 2:] != shares[0, 2:]).any():
        raise MismatchError(
            f"rank {comm.rank}: ranks differ in total rows, features or dtype of their rows"
        )
    if (shares[:, 0] != at).any() or ends[-1] != rows.total:
        raise MismatchError(
            f"rank {comm.rank}: its rows {rows.first} to {rows.first + len(rows)} and those of "
            f"the other ranks are not rows 0 to {rows.total}, each once and in order"
        )
    return agreed
