"""Sign: plus or minus one magnitude. One bit a value.

References: Bernstein, Wang, Azizzadenesheli, Anandkumar: signSGD, ICML 2018 (plain signs and the
majority vote); Karimireddy, Rebjock, Stich, Jaggi: Error Feedback Fixes SignSGD, ICML 2019 (signs
times the mean magnitude).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .. import kernels
from ..validation import check_real
from . import bitplane
from .base import Quantizer
from .buckets import bucket_of, check_bucket

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Sign(Quantizer):
    """The sign of each value, times the mean magnitude of its bucket or a given scale.

    Zero counts as positive. A code is a float32 scale a bucket, then a bit a value. With a
    given scale a sum over ranks is a majority vote: each rank's sign counts once, and the
    result is the scale with the sign of that count, positive if it is even.

    Attributes:
        bucket: So many consecutive values share a scale; all of them by default.
        scale: The magnitude of every decoded value, such as 1.0.

    NaN and infinities make the scale of their bucket NaN or infinite, given or not.
    """

    bucket: int | None = None
    scale: float | None = None
    biased: ClassVar[bool] = True
    preserves_zero: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_bucket(self)
        check_real(self, "scale", optional=True)
        if self.scale is not None and not 0 < np.float32(self.scale) < np.inf:
            raise ValueError(f"Sign: scale must be positive, got {self.scale}")

    def nbytes(self, count: int) -> int:
        """An eighth a value and four a bucket."""
        return 4 * -(-count // bucket_of(self.bucket, count)) + -(-count // 8)

    def _write(
        self, values: NDArray[np.float32], seed: int, out: NDArray[np.uint8]
    ) -> None:
        del seed
        scales, plane = bitplane.parts(out, values.size)
        kernels.to_sign(values, bucket_of(self.bucket, values.size), scales, plane)
        if self.scale is not None:
            scales[np.isfinite(scales)] = self.scale

    def _read(self, data: NDArray[np.uint8], out: NDArray[np.float32]) -> None:
        scales, plane = bitplane.checked_parts(data, out.size)
        levels = np.stack((-scales, scales), axis=1).reshape(-1)
        kernels.from_bitplane(
            levels, plane, out.size, bucket_of(self.bucket, out.size), out
        )

    @property
    def quantizes_own(self) -> bool:
        """With a given scale: one vote a rank."""
        return self.scale is not None

    @property
    def wire_format(self) -> int:
        """9."""
        return 9

    @property
    def settings(self) -> bytes:
        """The bucket, as u64."""
        return bitplane.settings(self.bucket)
