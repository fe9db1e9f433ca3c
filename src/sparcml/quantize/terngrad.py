"""TernGrad (Wen et al., 2017): the sign of a value, or zero, times one scale. Two bits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .. import kernels
from ..validation import check_real
from .base import Quantizer
from .buckets import bucket_of
from .integer import MOST, Integer
from .qsgd import omega_of_max

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST = float(np.finfo(np.float32).max)
FLAT = 1e-9  # a variance below this share of the mean square is rounding


@dataclass(frozen=True)
class TernGrad(Quantizer):
    """scale * sign(v) with probability |v| / scale, else 0: the value, on average.

    The scale is the largest magnitude, after values beyond `clip` standard deviations have
    been cut off there: a few large values would make all others rare. NaN stays NaN; an
    infinity spoils the vector (infinities and NaN come out).

    Attributes:
        clip: Standard deviations of the vector; None for no clipping. A vector of equal
            values, which has no deviation, is not clipped.
        scale: Used instead of the vector's own, and values beyond it are cut off there.
            With the same one on all ranks (the largest of their `scale_of`), the sum of P
            vectors is scale times whole numbers from -P to P.
    """

    clip: float | None = 2.5
    scale: float | None = None

    def __post_init__(self) -> None:
        check_real(self, "clip", optional=True)
        check_real(self, "scale", optional=True)
        if self.clip is not None and not 0 < self.clip < math.inf:
            raise ValueError(
                f"TernGrad: clip must be positive, or None for no clipping; got {self.clip}"
            )
        if self.scale is not None and not 0 < self.scale <= LARGEST:
            raise ValueError(
                f"TernGrad: scale must be a positive float32, got {self.scale}"
            )

    @property
    def biased(self) -> bool:
        """Only clipping is; of the clipped vector, the mean is kept."""
        return self.clip is not None or self.scale is not None

    def scale_of(self, values: NDArray[np.float32]) -> float:
        """What these values are divided by; infinite if one of them is."""
        if self.scale is not None:
            return self.scale
        largest, total, squares, count = kernels.moments(values)
        if self.clip is None or not 0 < largest < math.inf:
            return largest
        mean, square = total / count, squares / count
        variance = square - mean * mean
        if variance <= FLAT * square:
            return largest
        return float(np.float32(min(largest, self.clip * math.sqrt(variance))))

    def nbytes(self, count: int) -> int:
        """Two bits a value, and four bytes."""
        return kernels.grid_nbytes(count, bucket_of(None, count), 2)

    def for_reduced(self, ranks: int) -> Quantizer:
        """With a shared scale sums are whole multiples of it, and stay exact."""
        if self.scale is None or ranks > MOST:
            return self
        return Integer(self.scale, ranks)

    @property
    def quantizes_own(self) -> bool:
        """With a shared scale, or sums would not be multiples of it."""
        return self.scale is not None

    def omega(self, size: int) -> float:
        """E||Q(v) - v||^2 <= omega ||v||^2, for the clipped vector; no bound with `scale`."""
        return math.inf if self.scale is not None else omega_of_max(size, 1)

    def _write(
        self, values: NDArray[np.float32], seed: int, out: NDArray[np.uint8]
    ) -> None:
        """The scale, then -1, 0 or 1 for each."""
        whole = bucket_of(None, values.size)
        if self.clip is None and self.scale is None:
            kernels.to_grid(values, whole, 1, 2, kernels.MAX_NORM, seed=seed, out=out)
            return
        scale = self.scale_of(values)
        given = kernels.GIVEN_NORM
        kernels.to_grid(values, whole, 1, 2, given, scale=scale, seed=seed, out=out)

    def _read(self, data: NDArray[np.uint8], out: NDArray[np.float32]) -> None:
        """Multiples of the scale."""
        kernels.from_grid(data, out.size, bucket_of(None, out.size), 1, 2, out)

    @property
    def wire_format(self) -> int:
        """6."""
        return 6

    @property
    def settings(self) -> bytes:
        """None: the code has its scale."""
        return b""
