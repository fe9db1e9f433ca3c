"""Operations that an allreduce knows: one table for streams, kernels, messages and engines.

Each is commutative, bit for bit, so that it does not matter which operand is sparse.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Operation(NamedTuple):
    """One operation.

    Attributes:
        number: Number in kernels, and in the call codes of messages.
        ufunc: Function of NumPy.
        identity: Value e with e op x == x; of integers the extreme value for an infinity.
    """

    number: int
    ufunc: np.ufunc
    identity: float


OPS = {
    "sum": Operation(0, np.add, 0.0),
    "min": Operation(1, np.minimum, np.inf),
    "max": Operation(2, np.maximum, -np.inf),
    "prod": Operation(3, np.multiply, 1.0),
}
MEAN = "mean"  # a sum that is divided by the number of ranks at the end
