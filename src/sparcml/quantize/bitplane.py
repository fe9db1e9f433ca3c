"""What the codes of one bit a value have in common: numbers a bucket, then a plane of bits."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

SETTINGS = struct.Struct("<Q")  # the bucket; 0 is all values


def parts(
    data: NDArray[np.uint8], count: int
) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """The numbers and the plane in the bytes of a code."""
    at = data.size - -(-count // 8)
    return data[:at].view(np.float32), data[at:]


def checked_parts(
    data: NDArray[np.uint8], count: int
) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """The same of bytes that came from elsewhere.

    Raises:
        ValueError: If there are bits beyond the last value.
    """
    numbers, plane = parts(data, count)
    if count % 8 and plane[-1] >> count % 8:
        raise ValueError(f"bits beyond the last of {count} values")
    return numbers, plane


def settings(bucket: int | None) -> bytes:
    """As they open a value section."""
    return SETTINGS.pack(bucket or 0)


def bucket_of(opening: bytes) -> int | None:
    """The bucket in such settings."""
    (bucket,) = SETTINGS.unpack(opening)
    return int(bucket) or None
