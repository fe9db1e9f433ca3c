"""Buckets of consecutive values, each with a norm of its own; and their code's width."""

from __future__ import annotations

MOST = 2**32 - 1  # values in a bucket: as many as its field on the wire holds
WIDTHS = range(2, 9)  # bits of a code


def check_bucket(name: str, bucket: int | None) -> None:
    """ValueError if there is no such bucket; None is the whole vector."""
    if bucket is not None and not 1 <= bucket <= MOST:
        raise ValueError(
            f"{name}: bucket must be 1 to 2^32 - 1 values, or None for the whole vector; "
            f"got {bucket}"
        )


def check_bits(name: str, bits: int) -> None:
    """ValueError if codes cannot be of this width."""
    if bits not in WIDTHS:
        raise ValueError(f"{name}: bits must be 2 to 8, got {bits}")


def bucket_of(bucket: int | None, count: int) -> int:
    """How many values the first bucket of so many has at most."""
    return max(1, count) if bucket is None else bucket
