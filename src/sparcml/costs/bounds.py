"""What no lossless sum can do with less: values that have to be received, and rounds.

A place where m of P ranks have an entry takes m - 1 receipts until somebody holds the
whole sum, and P - 1 more until all do. Over all places of the sum these are P k + (P - 2) K
receipts, if each rank brings k entries and the sum has K. For equal places, K = k, and for
places that never coincide, K = P k, that is Lemma 5.1 of SparCML.

Only values count, at the bytes that one takes as it is: indices and headers come on top,
and so does everything that processors do.
"""

from __future__ import annotations

import math


def least_values(ranks: int, stored: float, filled: float) -> float:
    """Values that a rank receives, on average, at least.

    Args:
        ranks: P.
        stored: Entries that each rank brings.
        filled: Entries of the sum.
    """
    return stored + (ranks - 2) / ranks * filled if ranks > 1 else 0.0


def least_seconds(
    ranks: int,
    stored: float,
    filled: float,
    *,
    byte: float,
    latency: float = 0.0,
    value_bytes: int = 4,
) -> float:
    """How long they take, with log2 P messages that follow each other."""
    rounds = math.ceil(math.log2(ranks))
    values = least_values(ranks, stored, filled)
    return rounds * latency + values * value_bytes * byte
