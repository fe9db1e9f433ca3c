"""The reductions, and what an absent entry stands for in each."""

from __future__ import annotations

import numpy as np

OPS = ("sum", "min", "max", "prod")
MEAN = "mean"  # a sum, divided by the ranks at the end

_NEUTRAL = {"sum": 0.0, "min": np.inf, "max": -np.inf, "prod": 1.0}


def neutral(op: str) -> float:
    """The value e with e op x == x."""
    return _NEUTRAL[op]
