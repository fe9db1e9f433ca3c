"""Number of selected entries, given as a ratio of all entries or as a count."""

from __future__ import annotations

import math
from typing import Any

from ..validation import check_integer, check_ratio


def check_ratio_or_k(owner: Any) -> None:
    """Check that exactly one of `ratio` and `k` is given, with 0 < ratio <= 1 or k >= 1."""
    name, ratio, k = type(owner).__name__, owner.ratio, owner.k
    if (ratio is None) == (k is None):
        raise ValueError(
            f"{name}: exactly one of ratio and k must be given, got {ratio=}, {k=}"
        )
    check_ratio(owner)
    check_integer(owner, "k", optional=True, minimum=1)


def count_entries(ratio: float | None, k: int | None, size: int) -> int:
    """Return k, or size * ratio rounded half up and at least 1; never more than size."""
    if k is None:
        assert ratio is not None
        k = max(1, math.floor(size * ratio + 0.5))
    return min(k, size)
