"""The reductions, and what an absent entry stands for in each."""

from __future__ import annotations

import numpy as np

OPS = ("sum", "min", "max", "prod")
MEAN = "mean"  # a sum, divided by the ranks at the end

_IDENTITIES = {"sum": 0.0, "min": np.inf, "max": -np.inf, "prod": 1.0}


def identity(op: str) -> float:
    """The value e with e op x == x."""
    return _IDENTITIES[op]
