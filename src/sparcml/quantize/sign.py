"""Sign: plus or minus one magnitude, one bit per value.

References: Bernstein, Wang, Azizzadenesheli, Anandkumar: signSGD, ICML 2018 (signs and the
majority vote); Karimireddy, Rebjock, Stich, Jaggi: Error Feedback Fixes SignSGD, ICML 2019 (signs
times the mean magnitude).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .. import kernels
from ..validation import check_bucket, check_real
from . import bitplane
from .base import Quantizer
from .code import bucket_size

if TYPE_CHECKING:
    from numpy.typing import NDArray

FUSED_BUCKET = 1024  # bucket in messages of several parameters, which are no full vector


@dataclass(frozen=True)
class Sign(Quantizer):
    """Send the sign of each value and one scale per bucket.

        scale = mean |v_i| over the bucket, or the given scale
        Q(v)_i = scale if v_i >= 0, else -scale
        ||Q(v) - v||^2 = ||v||^2 - ||v||_1^2 / d for a bucket of d values

    With a given scale, an allreduce is a majority vote: the sign of each rank counts once, and
    the result is the scale with the sign of the count, positive if the votes are tied. With
    `nonfinite="propagate"`, NaN and infinities make the scale of their bucket NaN or infinite,
    given or not: there is no code for a single one.

    Attributes:
        bucket: Number of consecutive values that share a scale; None for the full vector.
        scale: Magnitude of every decoded value, such as 1.0; None for the mean magnitude.
    """

    bucket: int | None = None
    scale: float | None = None

    name = "sign"
    wire_formats = (9,)
    settings_size = bitplane.SETTINGS.size
    preserves_zero = False
    has_scales = True
    biased: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_bucket(self)
        check_real(self, "scale", optional=True)
        if self.scale is not None and not 0 < np.float32(self.scale) < np.inf:
            raise ValueError(f"Sign: scale must be positive, got {self.scale}")

    @property
    def quantizes_own(self) -> bool:
        """Whether the scale is given: then every rank has one vote."""
        return self.scale is not None

    def for_fused(self) -> Sign:
        """Return the quantizer with buckets."""
        return self if self.bucket else replace(self, bucket=FUSED_BUCKET)

    def nbytes(self, count: int) -> int:
        """Return one bit per value and four bytes per bucket."""
        return 4 * -(-count // bucket_size(self.bucket, count)) + -(-count // 8)

    def _write(
        self, values: NDArray[np.float32], seed: int, out: NDArray[np.uint8]
    ) -> None:
        del seed
        scales, plane = bitplane.sections(out, values.size)
        kernels.to_sign(values, bucket_size(self.bucket, values.size), scales, plane)
        if self.scale is not None:
            scales[np.isfinite(scales)] = self.scale

    def _read(self, data: NDArray[np.uint8], out: NDArray[np.float32]) -> None:
        scales, plane = bitplane.checked_sections(data, out.size)
        levels = np.stack((-scales, scales), axis=1).reshape(-1)
        kernels.from_bitplane(
            levels, plane, out.size, bucket_size(self.bucket, out.size), out
        )

    @property
    def settings(self) -> bytes:
        """Bucket as u64; the scales are part of the code."""
        return bitplane.pack_settings(self.bucket)

    @classmethod
    def from_wire(cls, wire_format: int, settings: bytes) -> Sign:
        """Return the quantizer of these settings."""
        del wire_format
        return cls(bitplane.unpack_settings(settings))
