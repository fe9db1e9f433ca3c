"""What the codes of one bit a value have in common: numbers a bucket, then a plane of bits."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from .. import memory

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .base import Code

SETTINGS = struct.Struct("<Q")  # the bucket; 0 is all values


def check_bucket(name: str, bucket: int | None) -> None:
    """A bucket is None or at least 1."""
    if bucket is not None and not 1 <= bucket < 2**63:
        raise ValueError(f"{name}: bucket must be at least 1, or None, got {bucket}")


def buckets(count: int, bucket: int | None) -> int:
    """How many there are in so many values."""
    return -(-count // (bucket or max(count, 1)))


def joined(numbers: NDArray[np.float32], plane: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The bytes of a code."""
    return memory.concatenate((numbers.view(np.uint8), plane))


def parts(code: Code) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """The numbers and the plane of a code of the right length.

    Raises:
        ValueError: If there are bits beyond the last value.
    """
    at = code.nbytes - -(-code.count // 8)
    numbers, plane = code.data[:at].view(np.float32), code.data[at:]
    if code.count % 8 and plane[-1] >> code.count % 8:
        raise ValueError(f"bits beyond the last of {code.count} values")
    return numbers, plane


def settings(bucket: int | None) -> bytes:
    """As they open a value section."""
    return SETTINGS.pack(bucket or 0)


def bucket_of(opening: bytes) -> int | None:
    """The bucket in such settings."""
    (bucket,) = SETTINGS.unpack(opening)
    return int(bucket) or None
