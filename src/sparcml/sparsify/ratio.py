"""How many entries: a share of them, or a number."""

from __future__ import annotations

import math
from typing import Any

from ..validation import check_integer, check_real


def check_ratio_or_k(owner: Any) -> None:
    """Raise unless exactly one is given, 0 < ratio <= 1 or k >= 1."""
    name, ratio, k = type(owner).__name__, owner.ratio, owner.k
    if (ratio is None) == (k is None):
        raise ValueError(f"{name}: give ratio or k, one of the two, got {ratio=}, {k=}")
    check_ratio(owner)
    check_positive(owner, "k")


def check_ratio(owner: Any) -> None:
    """Raise unless it is above 0 and at most 1, or None."""
    check_real(owner, "ratio", optional=True)
    if owner.ratio is not None and not 0 < owner.ratio <= 1:
        raise ValueError(
            f"{type(owner).__name__}: ratio must be above 0 and at most 1, got "
            f"{owner.ratio}; 0.01 is 1 %"
        )


def check_positive(owner: Any, setting: str, *, optional: bool = True) -> None:
    """Raise unless it is a whole number of at least 1, or None if it may."""
    check_integer(owner, setting, optional=optional)
    value = getattr(owner, setting)
    if value is not None and value < 1:
        raise ValueError(
            f"{type(owner).__name__}: {setting} must be at least 1, got {value}"
        )


def count_entries(ratio: float | None, k: int | None, size: int) -> int:
    """Entries out of `size`: k, or size * ratio rounded half up and at least 1.

    Never more than there are.
    """
    if k is None:
        assert ratio is not None
        k = max(1, math.floor(size * ratio + 0.5))
    return min(k, size)
