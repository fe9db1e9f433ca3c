"""Two labels of any names as -1 and 1, which losses of margins want."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..errors import DataError

if TYPE_CHECKING:
    from ..communicator import Communicator
    from .rows import Rows

SHOWN = 5


def signs(comm: Communicator, rows: Rows) -> tuple[Rows, tuple[float, float]]:
    """The rows with labels -1 and 1, and the labels that these stand for; collective.

    Raises:
        DataError: On all ranks, if they have not two labels together.
    """
    mine = np.unique(rows.labels)[: SHOWN + 1]
    found = np.unique(np.concatenate(comm.allgather(mine)))
    if found.size != 2:
        some = ", ".join(f"{label:g}" for label in found[:SHOWN])
        more = ", ..." * (found.size > SHOWN)
        few = "one class" if found.size == 1 else "more than two classes"
        raise DataError(
            f"labels of {few} ({some}{more}): two are needed; numbers to be predicted need "
            f"the loss squared"
        )
    low, high = (float(label) for label in found)
    labels = np.where(rows.labels == high, 1.0, -1.0)
    return replace(rows, labels=labels), (low, high)
