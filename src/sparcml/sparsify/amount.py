"""How many entries: a share of them, or a number."""

from __future__ import annotations

import math
import operator


def check_amount(name: str, ratio: float | None, k: int | None) -> None:
    """Raise unless exactly one is given, 0 < ratio <= 1 or k >= 1."""
    if (ratio is None) == (k is None):
        raise ValueError(f"{name}: give ratio or k, one of the two, got {ratio=}, {k=}")
    if ratio is not None and not 0 < ratio <= 1:
        raise ValueError(
            f"{name}: ratio must be above 0 and at most 1, got {ratio}; 0.01 is 1 %"
        )
    if k is not None:
        check_whole(name, "k", k)


def check_whole(name: str, what: str, value: int) -> None:
    """Raise unless it is a whole number of at least 1."""
    try:
        whole = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: {what} must be a whole number, got {value!r}") from None
    if whole < 1:
        raise ValueError(f"{name}: {what} must be at least 1, got {value}")


def amount(ratio: float | None, k: int | None, size: int) -> int:
    """Entries out of `size`: k, or size * ratio rounded half up and at least 1.

    Never more than there are.
    """
    if k is None:
        assert ratio is not None
        k = max(1, math.floor(size * ratio + 0.5))
    return min(k, size)
