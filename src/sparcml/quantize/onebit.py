"""OneBit: which of two levels. One bit a value.

Reference: Seide, Fu, Droppo, Li, Yu: 1-Bit Stochastic Gradient Descent and its Application to
Data-Parallel Distributed Training of Speech DNNs, Interspeech 2014; the mean threshold is that
of Microsoft's CNTK.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .. import kernels
from . import bitplane
from .base import Code, Quantizer
from .buckets import bucket_of, check_bucket
from .source import as_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

THRESHOLDS = ("zero", "mean")


@dataclass(frozen=True)
class OneBit(Quantizer):
    """The mean of the values on its side of a threshold, in place of each value.

    A code is two float32 levels a bucket, then a bit a value. Without a bucket a matrix is
    coded column by column, and a vector as one column. It needs error feedback: training
    with it stalls otherwise.

    Attributes:
        bucket: So many consecutive values share two levels.
        threshold: zero: the levels are the means of the negative values and of the others,
            which keeps the sum of a bucket. mean: they lie to both sides of the bucket's
            mean, at the mean distance from it.

    NaN and infinities make the levels that they belong to NaN or infinite.
    """

    bucket: int | None = None
    threshold: str = "zero"
    biased: ClassVar[bool] = True
    preserves_zero: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_bucket(self)
        if self.threshold not in THRESHOLDS:
            raise ValueError(
                f"OneBit: threshold must be zero or mean, got {self.threshold!r}"
            )

    def encode(
        self, values: Any, seed: int = 0, out: NDArray[np.uint8] | None = None
    ) -> Code:
        """Levels, then bits; a matrix column by column."""
        array = as_array(values)
        if not self._by_columns(array.shape):
            return super().encode(array, seed, out)
        code = self._of_columns(len(array)).encode(array.T, seed, out)
        return Code(code.count, code.data, array.shape)

    def decode(
        self, code: Code, out: NDArray[np.float32] | None = None
    ) -> NDArray[np.float32]:
        """The levels that the bits choose."""
        if code.shape is None or not self._by_columns(code.shape):
            return super().decode(code, out)
        rows, columns = code.shape
        turned = Code(code.count, code.data, (columns, rows))
        values = self._of_columns(rows).decode(turned).T
        if out is None:
            return np.ascontiguousarray(values)
        out[:] = values.reshape(out.shape)
        return out

    def nbytes(self, count: int) -> int:
        """An eighth a value and eight a bucket."""
        return 8 * -(-count // bucket_of(self.bucket, count)) + -(-count // 8)

    def _write(
        self, values: NDArray[np.float32], seed: int, out: NDArray[np.uint8]
    ) -> None:
        del seed
        bucket, mean = bucket_of(self.bucket, values.size), self.threshold == "mean"
        kernels.to_onebit(values, bucket, mean, *bitplane.parts(out, values.size))

    def _read(self, data: NDArray[np.uint8], out: NDArray[np.float32]) -> None:
        levels, plane = bitplane.checked_parts(data, out.size)
        kernels.from_bitplane(
            levels, plane, out.size, bucket_of(self.bucket, out.size), out
        )

    def _by_columns(self, shape: tuple[int, ...]) -> bool:
        return self.bucket is None and len(shape) == 2

    def _of_columns(self, rows: int) -> OneBit:
        """For columns one behind the other."""
        return replace(self, bucket=max(rows, 1))

    @property
    def wire_format(self) -> int:
        """8."""
        return 8

    @property
    def settings(self) -> bytes:
        """The bucket, as u64. Which threshold it was is no matter to a reader."""
        return bitplane.settings(self.bucket)
