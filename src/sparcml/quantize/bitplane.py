"""Layout of the codes of one bit per value: float32 numbers per bucket, then a bit plane."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

SETTINGS = struct.Struct("<Q")  # bucket; 0 is the full vector


def sections(
    data: NDArray[np.uint8], count: int
) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Return the numbers and the bit plane as views of the bytes of a code."""
    at = data.size - -(-count // 8)
    return data[:at].view(np.float32), data[at:]


def checked_sections(
    data: NDArray[np.uint8], count: int
) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Return the sections of received bytes.

    Raises:
        ValueError: If bits beyond the last value are set.
    """
    numbers, plane = sections(data, count)
    if count % 8 and plane[-1] >> count % 8:
        raise ValueError(f"bits beyond the last of {count} values must be 0")
    return numbers, plane


def pack_settings(bucket: int | None) -> bytes:
    """Return the bucket as it opens a value section."""
    return SETTINGS.pack(bucket or 0)


def unpack_settings(settings: bytes) -> int | None:
    """Return the bucket of a value section."""
    (bucket,) = SETTINGS.unpack(settings)
    return int(bucket) or None
