"""TernGrad: the sign of a value, or zero, times one scale; two bits per value.

Reference: Wen, Xu, Yan, Wu, Wang, Chen, Li: TernGrad, NeurIPS 2017.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .. import kernels
from ..validation import check_real
from .base import Quantizer, ScaleRule
from .code import bucket_size
from .integer import MAX, Integer
from .qsgd import omega_of_max

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST = float(np.finfo(np.float32).max)
FLAT = 1e-9  # a variance below this fraction of the mean square is rounding


@dataclass(frozen=True)
class TernGrad(Quantizer):
    """Send -1, 0 or 1 per value and one scale.

        c = v clipped to +- clip standard deviations, scale = max |c_i|
        Q(v)_i = scale sign(c_i) with probability |c_i| / scale, else 0
        E Q(v) = c, E ||Q(v) - c||^2 <= omega ||c||^2

    Clipping keeps a few large values from making all others rare. With
    `nonfinite="propagate"`, NaN and infinities are decoded as NaN, and do not change the others.

    Attributes:
        clip: Standard deviations of the vector; None for no clipping. A vector of equal
            values is not clipped.
        scale: Scale instead of the vector's own; larger values are clipped to it. With the
            same scale on all ranks (the maximum of their `scale_of`), the sum over P ranks is
            an integer multiple of it, from -P to P.
        count_zeros: Whether zeros count in the standard deviation, as published. Of a gradient
            with 99 % zeros, such as an embedding's, clipping then keeps only 5 % of the squared
            norm: use False there.
    """

    clip: float | None = 2.5
    scale: float | None = None
    count_zeros: bool = True

    name = "terngrad"
    wire_formats = (6,)
    published_without_feedback = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real(self, "clip", optional=True)
        check_real(self, "scale", optional=True)
        if self.clip is not None and not 0 < self.clip < math.inf:
            raise ValueError(
                f"TernGrad: clip must be positive, or None for no clipping, got {self.clip}"
            )
        if self.scale is not None and not 0 < self.scale <= LARGEST:
            raise ValueError(
                f"TernGrad: scale must be a positive float32, got {self.scale}"
            )

    @property
    def biased(self) -> bool:
        """Whether values are clipped; without clipping the code is unbiased."""
        return self.clip is not None or self.scale is not None

    @property
    def scale_rule(self) -> ScaleRule:
        """Rule for the scale that all ranks share."""
        return ScaleRule(self.clip, self.scale, self.count_zeros)

    @property
    def quantizes_own(self) -> bool:
        """Whether the scale is shared: then sums must be multiples of it."""
        return self.scale is not None

    def for_fused(self) -> TernGrad:
        """Return the quantizer for values that were clipped and divided by their scale."""
        return replace(self, clip=None, scale=1.0)

    def for_reduced(self, ranks: int) -> Quantizer:
        """Return `Integer` if the scale is shared: sums are exact multiples of it."""
        if self.scale is None or ranks > MAX:
            return self
        return Integer(self.scale, ranks, nonfinite=self.nonfinite)

    def scale_of(self, values: NDArray[np.float32]) -> float:
        """Return the scale of these values; NaN and infinities are left out."""
        if self.scale is not None:
            return self.scale
        largest, total, squares, count = kernels.moments(values)
        if largest == math.inf:  # NaN is left out of the moments
            values = np.where(np.isfinite(values), values, np.float32(np.nan))
            largest, total, squares, count = kernels.moments(values)
        if self.clip is None or not largest:
            return largest
        if not self.count_zeros:
            count -= values.size - int(np.count_nonzero(values))
        mean, square = total / count, squares / count
        variance = square - mean * mean
        if variance <= FLAT * square:
            return largest
        return float(np.float32(min(largest, self.clip * math.sqrt(variance))))

    @classmethod
    def from_wire(cls, wire_format: int, settings: bytes) -> TernGrad:
        """Return the default instance: decoding needs no parameter."""
        del wire_format, settings
        return cls()

    def nbytes(self, count: int) -> int:
        """Return two bits per value and four bytes."""
        return kernels.grid_nbytes(count, bucket_size(None, count), 2)

    def omega(self, size: int) -> float:
        """Return omega in E||Q(v) - v||^2 <= omega ||v||^2 for clipped v; inf with `scale`."""
        return math.inf if self.scale is not None else omega_of_max(size, 1)

    def _write(
        self, values: NDArray[np.float32], seed: int, out: NDArray[np.uint8]
    ) -> None:
        bucket = bucket_size(None, values.size)
        if self.clip is None and self.scale is None:
            kernels.to_grid(values, bucket, 1, 2, kernels.MAX_NORM, seed=seed, out=out)
            return
        scale, given = self.scale_of(values), kernels.GIVEN_NORM
        kernels.to_grid(values, bucket, 1, 2, given, scale=scale, seed=seed, out=out)

    def _read(self, data: NDArray[np.uint8], out: NDArray[np.float32]) -> None:
        kernels.from_grid(data, out.size, bucket_size(None, out.size), 1, 2, out)
