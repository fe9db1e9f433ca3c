"""OneBit: one of two levels per value, one bit.

Reference: Seide, Fu, Droppo, Li, Yu: 1-Bit Stochastic Gradient Descent and its Application to
Data-Parallel Distributed Training of Speech DNNs, Interspeech 2014. The mean threshold is that of
Microsoft's CNTK.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .. import kernels
from ..validation import check_bucket
from . import bitplane
from .base import Quantizer
from .code import Code, as_array, as_float32, bucket_size, check_code

if TYPE_CHECKING:
    from numpy.typing import NDArray

THRESHOLDS = ("zero", "mean")
# Bucket in messages of several parameters. Rows of embeddings and of output layers differ in size,
# and zeros count as non-negative: two levels for many rows lose the small ones.
FUSED_BUCKET = 128


@dataclass(frozen=True)
class OneBit(Quantizer):
    """Replace each value by the mean of the values on its side of a threshold.

        t = 0, or the mean of the bucket
        Q(v)_i = high if v_i >= t, else low
        zero: high, low = means of the values >= 0 and < 0; mean: t +- mean |v - t|

    Without a bucket, a matrix is encoded column by column and a vector as one column. Training
    stalls without error feedback. With `nonfinite="propagate"`, NaN and infinities make the levels
    of their side NaN or infinite: there is no code for a single one.

    Attributes:
        bucket: Number of consecutive values that share two levels; None for a column.
        threshold: "zero" preserves the sum of a bucket; "mean" is CNTK's.
    """

    bucket: int | None = None
    threshold: str = "zero"

    name = "onebit"
    wire_formats = (8,)
    settings_size = bitplane.SETTINGS.size
    preserves_zero = False
    has_scales = True
    biased: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_bucket(self)
        if self.threshold not in THRESHOLDS:
            raise ValueError(
                f"OneBit: threshold must be 'zero' or 'mean', got {self.threshold!r}"
            )

    def for_fused(self) -> OneBit:
        """Return the quantizer with buckets."""
        return self if self.bucket else replace(self, bucket=FUSED_BUCKET)

    def encode(
        self, values: Any, seed: int = 0, out: NDArray[np.uint8] | None = None
    ) -> Code:
        """Encode values; a matrix column by column. See `Quantizer.encode`."""
        array = as_array(values)
        if not self._by_columns(array.shape):
            return super().encode(array, seed, out)
        self._check_finite(array, as_float32(array))
        code = self._for_columns(len(array)).propagating().encode(array.T, seed, out)
        return Code(code.count, code.data, array.shape)

    def decode(
        self, code: Code, out: NDArray[np.float32] | None = None
    ) -> NDArray[np.float32]:
        """Decode values. See `Quantizer.decode`."""
        check_code(code)
        if code.shape is None or not self._by_columns(code.shape):
            return super().decode(code, out)
        rows, columns = code.shape
        transposed = Code(code.count, code.data, (columns, rows))
        values = self._for_columns(rows).decode(transposed).T
        if out is None:
            return np.ascontiguousarray(values)
        out[:] = values.reshape(out.shape)
        return out

    def nbytes(self, count: int) -> int:
        """Return one bit per value and eight bytes per bucket."""
        return 8 * -(-count // bucket_size(self.bucket, count)) + -(-count // 8)

    def _write(
        self, values: NDArray[np.float32], seed: int, out: NDArray[np.uint8]
    ) -> None:
        del seed
        bucket, mean = bucket_size(self.bucket, values.size), self.threshold == "mean"
        kernels.to_onebit(values, bucket, mean, *bitplane.sections(out, values.size))

    def _read(self, data: NDArray[np.uint8], out: NDArray[np.float32]) -> None:
        levels, plane = bitplane.checked_sections(data, out.size)
        kernels.from_bitplane(
            levels, plane, out.size, bucket_size(self.bucket, out.size), out
        )

    def _by_columns(self, shape: tuple[int, ...]) -> bool:
        return self.bucket is None and len(shape) == 2

    def _for_columns(self, rows: int) -> OneBit:
        return replace(self, bucket=max(rows, 1))

    @property
    def settings(self) -> bytes:
        """Bucket as u64; a reader does not need the threshold."""
        return bitplane.pack_settings(self.bucket)

    @classmethod
    def from_wire(cls, wire_format: int, settings: bytes) -> OneBit:
        """Return the quantizer of these settings."""
        del wire_format
        return cls(bitplane.unpack_settings(settings))
