"""OneBit: which of two levels. One bit a value.

Reference: Seide, Fu, Droppo, Li, Yu: 1-Bit Stochastic Gradient Descent and its Application to
Data-Parallel Distributed Training of Speech DNNs, Interspeech 2014; the mean threshold is that
of Microsoft's CNTK.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .. import kernels
from . import bits
from .base import Code, Quantizer, check_length, flat

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
    keeps_zero: ClassVar[bool] = False

    def __post_init__(self) -> None:
        bits.check_bucket("OneBit", self.bucket)
        if self.threshold not in THRESHOLDS:
            raise ValueError(
                f"OneBit: threshold must be zero or mean, got {self.threshold!r}"
            )

    def encode(self, values: Any, seed: int = 0) -> Code:
        """Levels, then bits."""
        del seed
        array = np.asarray(values)
        by_columns = self.bucket is None and array.ndim == 2
        column = flat(array.T if by_columns else array)
        bucket = self._bucket(array.shape)
        levels, plane = kernels.one_bit(column, bucket, self.threshold == "mean")
        return Code(array.size, bits.joined(levels, plane), array.shape)

    def decode(self, code: Code) -> NDArray[np.float32]:
        """The levels that the bits choose."""
        shape = (code.count,) if code.shape is None else code.shape
        bucket = self._bucket(shape)
        check_length(code, self._nbytes(code.count, bucket))
        levels, plane = bits.parts(code)
        values = kernels.two_levels(levels, plane, code.count, bucket)
        if self.bucket is None and len(shape) == 2:
            return np.ascontiguousarray(values.reshape(shape[::-1]).T)
        return code.shaped(values)

    def nbytes(self, count: int) -> int:
        """An eighth a value and eight a bucket."""
        return self._nbytes(count, self.bucket)

    @property
    def wire_format(self) -> int:
        """8."""
        return 8

    @property
    def settings(self) -> bytes:
        """The bucket, as u64. Which threshold it was is no matter to a reader."""
        return bits.settings(self.bucket)

    def _bucket(self, shape: tuple[int, ...]) -> int:
        """How many values share their levels in an array of this shape."""
        rows = shape[0] if len(shape) == 2 else int(np.prod(shape))
        return self.bucket or max(rows, 1)

    @staticmethod
    def _nbytes(count: int, bucket: int | None) -> int:
        return 8 * bits.buckets(count, bucket) + -(-count // 8)
