"""Sign: plus or minus one magnitude. One bit a value.

References: Bernstein, Wang, Azizzadenesheli, Anandkumar: signSGD, ICML 2018 (plain signs and the
majority vote); Karimireddy, Rebjock, Stich, Jaggi: Error Feedback Fixes SignSGD, ICML 2019 (signs
times the mean magnitude).
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
    keeps_zero: ClassVar[bool] = False

    def __post_init__(self) -> None:
        bits.check_bucket("Sign", self.bucket)
        if self.scale is not None and not 0 < np.float32(self.scale) < np.inf:
            raise ValueError(f"Sign: scale must be positive, got {self.scale}")

    def encode(self, values: Any, seed: int = 0) -> Code:
        """Scales, then bits."""
        del seed
        array = np.asarray(values)
        scales, plane = kernels.signs(flat(array), self.bucket or max(array.size, 1))
        if self.scale is not None:
            scales[np.isfinite(scales)] = self.scale
        return Code(array.size, bits.joined(scales, plane), array.shape)

    def decode(self, code: Code) -> NDArray[np.float32]:
        """The scales with the signs."""
        check_length(code, self.nbytes(code.count))
        scales, plane = bits.parts(code)
        levels = np.stack((-scales, scales), axis=1).reshape(-1)
        bucket = self.bucket or max(code.count, 1)
        return code.shaped(kernels.two_levels(levels, plane, code.count, bucket))

    def nbytes(self, count: int) -> int:
        """An eighth a value and four a bucket."""
        return 4 * bits.buckets(count, self.bucket) + -(-count // 8)

    @property
    def codes_own(self) -> bool:
        """With a given scale: one vote a rank."""
        return self.scale is not None

    @property
    def wire_format(self) -> int:
        """9."""
        return 9

    @property
    def settings(self) -> bytes:
        """The bucket, as u64."""
        return bits.settings(self.bucket)
