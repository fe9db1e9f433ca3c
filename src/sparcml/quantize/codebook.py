"""Codebook: a sign and one of two magnitudes per value, two bits per value.

The two magnitudes are the centroids of the magnitudes in a bucket, found by Lloyd's algorithm. On
the largest entries of normally distributed values the error is 0.4 % of their energy; one
magnitude alone has 1.2 %.

References: Lloyd: Least Squares Quantization in PCM, 1982; Sarfi et al.: Communication Efficient
LLM Pre-training with SparseLoCo, 2025 (two bits per value; its four bins of equal width over both
signs leave two of them empty on the largest entries, and so have the error of one magnitude).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..validation import check_bucket
from . import bitplane
from .base import Quantizer
from .code import bucket_size

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROUNDS = 4  # of Lloyd's algorithm


@dataclass(frozen=True)
class Codebook(Quantizer):
    """Send the sign of each value, and which of two magnitudes per bucket is nearest.

        low, high = centroids of |v_i| over the bucket
        Q(v)_i = sign(v_i) (high if |v_i| > (low + high) / 2, else low)

    The code holds the two magnitudes of each bucket as float32, then one bit per value for the
    signs and one for the magnitudes. It is meant for the entries that a sparsifier selects. With
    `nonfinite="propagate"`, NaN and infinities make the magnitudes of their bucket NaN or infinite:
    there is no code for a single one.

    Args:
        bucket: Number of consecutive values that share two magnitudes; None for all.
    """

    bucket: int | None = 1024

    name = "codebook"
    wire_formats = (11,)
    settings_size = bitplane.SETTINGS.size
    preserves_zero = False
    has_scales = True
    biased: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_bucket(self)

    @classmethod
    def examples(cls) -> tuple[Quantizer, ...]:
        """Return instances that the test rosters run."""
        return (cls(), cls(bucket=100), cls(bucket=None))

    def nbytes(self, count: int) -> int:
        """Return two bits per value and eight bytes per bucket."""
        return 8 * -(-count // bucket_size(self.bucket, count)) + 2 * -(-count // 8)

    def _write(
        self, values: NDArray[np.float32], seed: int, out: NDArray[np.uint8]
    ) -> None:
        del seed
        size = bucket_size(self.bucket, values.size)
        magnitudes, signs, high = self._sections(out, values.size)
        with np.errstate(invalid="ignore", over="ignore"):
            centroids, is_high = two_centroids(np.abs(values), size)
        magnitudes[:] = centroids.ravel()
        signs[:] = np.packbits(np.signbit(values), bitorder="little")
        high[:] = np.packbits(is_high, bitorder="little")

    def _read(self, data: NDArray[np.uint8], out: NDArray[np.float32]) -> None:
        size = bucket_size(self.bucket, out.size)
        magnitudes, *planes = self._sections(data, out.size)
        if out.size % 8 and any(plane[-1] >> out.size % 8 for plane in planes):
            raise ValueError(f"decode: bits beyond the last of {out.size} values must be 0")
        if (magnitudes < 0).any():
            raise ValueError("decode: magnitudes of a codebook must not be negative")
        signs, high = (
            np.unpackbits(plane, bitorder="little")[: out.size] for plane in planes
        )
        bits, pairs = out.view(np.uint32), magnitudes.view(np.uint32).reshape(-1, 2)
        whole = out.size // size * size  # the last bucket may have fewer values
        for part, own in (
            (slice(0, whole), pairs[: whole // size]),
            (slice(whole, out.size), pairs[whole // size :]),
        ):
            low, change = own[:, :1], own[:, :1] ^ own[:, 1:]
            if len(own):
                rows = bits[part].reshape(len(own), -1)
                np.multiply(high[part].reshape(rows.shape), change, out=rows)
                rows ^= low
        bits ^= signs.astype(np.uint32) << 31  # as a negation, also of zeros

    def _sections(
        self, data: NDArray[np.uint8], count: int
    ) -> tuple[NDArray[np.float32], NDArray[np.uint8], NDArray[np.uint8]]:
        plane = -(-count // 8)
        start = data.size - 2 * plane
        return (
            data[:start].view(np.float32),
            data[start : start + plane],
            data[start + plane :],
        )

    @property
    def settings(self) -> bytes:
        """Bucket as u64; the magnitudes are part of the code."""
        return bitplane.pack_settings(self.bucket)

    @classmethod
    def from_wire(cls, wire_format: int, settings: bytes) -> Codebook:
        """Return the quantizer of these settings."""
        del wire_format
        return cls(bitplane.unpack_settings(settings))


def two_centroids(
    magnitudes: NDArray[np.float32], size: int
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return the low and high centroid of each bucket, and which values are high.

    Args:
        magnitudes: Magnitudes of the values.
        size: Values per bucket; the last one may have fewer.
    """
    full = magnitudes.size // size
    rows = magnitudes[: full * size].reshape(full, size)
    centroids, is_high = _centroids(rows)
    if magnitudes.size == rows.size:
        return centroids, is_high.reshape(-1)
    rest = _centroids(magnitudes[rows.size :].reshape(1, -1))
    return np.concatenate((centroids, rest[0])), np.append(is_high, rest[1])


def _centroids(
    rows: NDArray[np.float32],
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return the centroids of each row, and which of its values are high."""
    length = rows.shape[1]
    totals = rows.sum(axis=1, dtype=np.float64)
    threshold = totals / length
    for _ in range(ROUNDS):
        is_high = rows > threshold.astype(np.float32)[:, None]
        upper = np.multiply(rows, is_high).sum(axis=1, dtype=np.float64)
        n = np.bitwise_count(np.packbits(is_high, axis=1)).sum(axis=1, dtype=np.int64)
        high = np.where(n > 0, upper / np.maximum(n, 1), threshold)
        low = np.where(n < length, (totals - upper) / np.maximum(length - n, 1), high)
        threshold = (low + high) / 2
    return np.stack((low, high), axis=1).astype(np.float32), is_high
