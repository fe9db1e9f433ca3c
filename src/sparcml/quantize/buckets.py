"""Buckets of consecutive values, each with a norm of its own; and their code's width."""

from __future__ import annotations

from typing import Any

from ..validation import check_integer

MOST = 2**32 - 1  # values in a bucket: as many as its field on the wire holds
WIDTHS = range(2, 9)  # bits of a code


def check_bucket(owner: Any) -> None:
    """Raise if there is no such bucket; None is the whole vector."""
    check_integer(owner, "bucket", optional=True)
    if owner.bucket is not None and not 1 <= owner.bucket <= MOST:
        raise ValueError(
            f"{type(owner).__name__}: bucket must be 1 to 2^32 - 1 values, or None for the "
            f"whole vector; got {owner.bucket}"
        )


def check_bits(owner: Any) -> None:
    """Raise if codes cannot be of this width."""
    check_integer(owner, "bits")
    if owner.bits not in WIDTHS:
        raise ValueError(f"{type(owner).__name__}: bits must be 2 to 8, got {owner.bits}")


def bucket_of(bucket: int | None, count: int) -> int:
    """How many values the first bucket of so many has at most."""
    return max(1, count) if bucket is None else bucket
