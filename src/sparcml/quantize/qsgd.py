"""QSGD: each value rounded at random to a neighbour on a uniform grid.

Reference: Alistarh, Grubic, Li, Tomioka, Vojnovic: QSGD, NeurIPS 2017.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .. import buffer_pool, kernels
from ..validation import check_bits, check_bucket, check_integer
from . import coders
from .base import SEEDS, Quantizer
from .code import bucket_size, parse_bits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Bytes = NDArray[np.uint8]
    Levels = tuple[Floats, NDArray[np.int8]]

SETTINGS = struct.Struct("<BBBBI")  # bits, levels, norm, coder, bucket (0: full vector)
NORMS = {"max": kernels.MAX_NORM, "l2": kernels.L2_NORM}
DEFAULT_BITS = 8
NAN = -128  # the level of NaN
CHUNK = 1 << 16  # levels that are checked at a time


@dataclass(frozen=True)
class QSGD(Quantizer):
    """Round values at random to multiples of norm / s.

        x_i = s |v_i| / norm, with norm = max |v_i| or ||v||_2 of the bucket
        Q(v_i) = norm sign(v_i) l / s, l = floor(x_i) + 1 with probability x_i - floor(x_i),
        else l = floor(x_i); E Q(v_i) = v_i, E ||Q(v) - v||^2 <= omega ||v||^2

    With `nonfinite="propagate"`, NaN and infinities are decoded as NaN, and do not change the other
    values of their bucket.

    Attributes:
        bits: Bits per value with the sign, 2 to 8. With `levels` it is derived, and must
            be left out or agree.
        bucket: Number of consecutive values that share a norm; None for the full vector.
        norm: "max", the largest magnitude, or "l2", the Euclidean norm.
        levels: Number s of levels above zero, 1 to 127; None for as many as fit in `bits`.
        coder: None packs levels to `bits` each. The others are slower, for slow links: "rice"
            is the shortest if most levels are zero, as at 2 bits; "elias" is the code of the
            paper.
        reduced_bits: Bits per value of sums, where an algorithm quantizes them again; None
            for `bits`. A sum of ranks is quantized once for all of them, so that its errors
            do not average out.
    """

    bits: int = DEFAULT_BITS
    bucket: int | None = 256
    norm: str = "max"
    levels: int | None = None
    coder: str | None = None
    reduced_bits: int | None = None

    name = "qsgd"
    wire_formats = (4,)
    settings_size = SETTINGS.size
    option = "BITS"
    has_scales = True
    planning_cost = 0.55  # encode 0.38, decode 0.17
    biased: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_bits(self)
        check_integer(self, "levels", optional=True)
        if self.levels is not None:
            self._set_bits(self.levels)
        check_bucket(self)
        if self.norm not in NORMS:
            raise ValueError(f"QSGD: norm must be 'max' or 'l2', got {self.norm!r}")
        if self.coder not in coders.NAMES:
            names = ", ".join(map(repr, coders.NAMES))
            raise ValueError(f"QSGD: coder must be one of {names}, got {self.coder!r}")
        if self.reduced_bits is not None:
            if self.levels is not None:
                raise ValueError(
                    f"QSGD: reduced_bits must be None with levels, got {self.reduced_bits}"
                )
            check_integer(self, "reduced_bits", optional=True)
            if not 2 <= self.reduced_bits <= 8:
                raise ValueError(
                    f"QSGD: reduced_bits must be from 2 to 8 or None, got {self.reduced_bits}"
                )

    def _set_bits(self, levels: int) -> None:
        """Derive the width from the levels, so that QSGD(levels=7) == QSGD(bits=4)."""
        if not 1 <= levels <= 127:
            raise ValueError(f"QSGD: levels must be from 1 to 127, got {levels}")
        bits = 1 + levels.bit_length()
        if self.bits not in (bits, DEFAULT_BITS):
            raise ValueError(
                f"QSGD: bits must be {bits} for {levels} levels, got {self.bits}; leave it out"
            )
        object.__setattr__(self, "bits", bits)
        if levels == max_levels(bits):
            object.__setattr__(self, "levels", None)

    @classmethod
    def planned(cls) -> tuple[Quantizer, ...]:
        """Return 4 bits."""
        return (cls(bits=4),)

    @classmethod
    def planned_with_sparsifier(cls) -> tuple[Quantizer, ...]:
        """Return 8 bits."""
        return (cls(bits=8),)

    @property
    def label(self) -> str:
        """Name in the tables of the planner."""
        return f"QSGD {self.short_label}"

    @property
    def short_label(self) -> str:
        """Number of bits."""
        return f"{self.bits} bits"

    @classmethod
    def from_option(cls, text: str) -> QSGD:
        """Build an instance from qsgd:BITS."""
        return cls(parse_bits(cls.name, text)) if text else cls()

    @classmethod
    def examples(cls) -> tuple[Quantizer, ...]:
        """Return instances that the test rosters run."""
        coded = cls(4, coder="elias"), cls(2, coder="rice", reduced_bits=3)
        return cls(4), cls(8), cls(3, bucket=64, norm="l2"), *coded

    @property
    def s(self) -> int:
        """Number of levels above zero."""
        return max_levels(self.bits) if self.levels is None else self.levels

    def nbytes(self, count: int) -> int:
        """Return four bytes per bucket and `bits` per value; with a coder the maximum."""
        packed = kernels.grid_nbytes(count, bucket_size(self.bucket, count), self.bits)
        return packed if self.coder is None else packed + coders.PAIR.size

    def encoded_nbytes(self, count: int, head: NDArray[np.uint8]) -> int:
        """Return the number of bytes, which a code with a coder begins with."""
        maximum = self.nbytes(count)
        if self.coder is None:
            return maximum
        return coders.nbytes(head, self._norm_bytes(count), maximum)

    def omega(self, size: int) -> float:
        """Return omega in E||Q(v) - v||^2 <= omega ||v||^2 for vectors of `size` values."""
        d = min(size, bucket_size(self.bucket, size))
        if self.norm == "l2":
            return min(d / self.s**2, math.sqrt(d) / self.s)
        return omega_of_max(d, self.s)

    def quantize(self, values: NDArray[np.float32], seed: int = 0) -> Levels:
        """Return the norm of each bucket and the level of each value.

        Levels are from -s to s, or -128 for NaN. They are what `encode` packs.
        """
        bucket = bucket_size(self.bucket, values.size)
        norm = NORMS[self.norm]
        code = kernels.to_grid(values, bucket, self.s, 8, norm, seed=seed % SEEDS)
        at = code.size - values.size
        return code[:at].view(np.float32), code[at:].view(np.int8)

    def dequantize(
        self,
        norms: NDArray[np.float32],
        levels: NDArray[np.int8],
        out: NDArray[np.float32] | None = None,
    ) -> NDArray[np.float32]:
        """Return the values of these levels."""
        code = buffer_pool.concatenate((norms.view(np.uint8), levels.view(np.uint8)))
        bucket = bucket_size(self.bucket, levels.size)
        return kernels.from_grid(code, levels.size, bucket, self.s, 8, out)

    def _norm_bytes(self, count: int) -> int:
        return 4 * -(-count // bucket_size(self.bucket, count))

    def _write(
        self, values: NDArray[np.float32], seed: int, out: NDArray[np.uint8]
    ) -> int | None:
        if self.coder is not None:
            used = coders.write(self.coder, *self.quantize(values, seed), out)
            if used is not None:
                return used
            out = out[coders.PAIR.size :]
        bucket, norm = bucket_size(self.bucket, values.size), NORMS[self.norm]
        kernels.to_grid(values, bucket, self.s, self.bits, norm, seed=seed, out=out)
        return None

    def _read(self, data: NDArray[np.uint8], out: NDArray[np.float32]) -> None:
        if self.coder is not None:
            if coders.is_encoded(data):
                self._read_encoded(self.coder, data, out)
                return
            data = data[coders.PAIR.size :]
        bucket = bucket_size(self.bucket, out.size)
        kernels.from_grid(data, out.size, bucket, self.s, self.bits, out)

    def _read_encoded(
        self, coder: str, data: NDArray[np.uint8], out: NDArray[np.float32]
    ) -> None:
        norms, levels = coders.read(coder, data, self._norm_bytes(out.size), out.size)
        for start in range(0, levels.size, CHUNK):  # a hostile code may claim many levels
            part = levels[start : start + CHUNK]
            if ((part > self.s) | (part < -self.s) & (part != NAN)).any():
                raise ValueError(f"QSGD: levels must be at most {self.s}")
        self.dequantize(norms, levels, out)

    def for_reduced(self, ranks: int) -> QSGD:
        """Return the quantizer of sums."""
        del ranks
        if self.reduced_bits is None:
            return self
        return replace(self, bits=self.reduced_bits, reduced_bits=None)

    @property
    def settings(self) -> bytes:
        """Bits, levels, norm, coder and bucket."""
        norm, coder = NORMS[self.norm], coders.NAMES.index(self.coder)
        return SETTINGS.pack(self.bits, self.s, norm, coder, self.bucket or 0)

    @classmethod
    def from_wire(cls, wire_format: int, settings: bytes) -> QSGD:
        """Return the quantizer of these settings."""
        del wire_format
        bits, levels, norm, coder, bucket = SETTINGS.unpack(settings)
        names = {number: name for name, number in NORMS.items()}
        if norm not in names:
            raise ValueError(f"QSGD: norm {norm} is unknown")
        if coder >= len(coders.NAMES):
            raise ValueError(f"QSGD: coder {coder} is unknown")
        quantizer = cls(bits, bucket or None, names[norm], levels, coders.NAMES[coder])
        if quantizer.bits != bits:
            raise ValueError(f"QSGD: {levels} levels do not have {bits} bits")
        return quantizer


def max_levels(bits: int) -> int:
    """Return the number of levels above zero that fit in `bits` with a sign."""
    return int(2 ** (bits - 1) - 1)


def omega_of_max(d: int, s: int) -> float:
    """Return omega of d values that are divided by their largest magnitude.

    In steps of norm / s, the largest value has magnitude s and no error. A value x below the
    first step has the variance x (1 - x); above it, the variance is smaller relative to x^2. The
    worst d - 1 values have x = 1 / (2 + 2 omega), where 4 s^2 omega (1 + omega) = d - 1.
    """
    return (math.sqrt(1 + max(0, d - 1) / s**2) - 1) / 2


def fuses(quantizer: Quantizer | None) -> bool:
    """Return whether `GridPasses` has the passes of a quantizer."""
    return (
        isinstance(quantizer, QSGD)
        and quantizer.coder is None
        and quantizer.bucket is not None
        and quantizer.bucket % 8 == 0
        and quantizer.bucket <= kernels.MAX_FUSED_BUCKET
    )


class GridPasses:
    """The passes over one dense vector, for `in_two_passes`.

    Args:
        quantizer: The quantizer, for which `fuses` holds.
        gradient: The new gradient, which `mean` may overwrite.
        residual: The residual; None without error feedback.
        scale: Factor of the residual.
        corrected: Array of the corrected gradient and then of the new residual, which may be
            `residual`; None without error feedback.
        mean: Array for the mean.
        check: Called before anything is sent, with whether all values are finite.
    """

    def __init__(
        self,
        quantizer: Quantizer,
        gradient: Floats,
        residual: Floats | None,
        scale: float,
        corrected: Floats | None,
        mean: Floats,
        check: Callable[[bool], None],
    ) -> None:
        assert isinstance(quantizer, QSGD)
        assert quantizer.bucket is not None
        self._format = (quantizer.bucket, quantizer.s, quantizer.bits)
        self._norm = NORMS[quantizer.norm]
        self._gradient, self._residual, self._scale = gradient, residual, scale
        self._corrected, self._mean, self._check = corrected, mean, check

    def encode(self, seed: int, code: Bytes) -> int:
        """Write the code of the corrected gradient; return the values other than +0.0."""
        summands = self._residual, self._gradient, self._scale, self._corrected
        settings = *self._format, self._norm
        nonzeros, finite = kernels.to_grid_corrected(*summands, *settings, seed, code)
        self._check(finite)
        return nonzeros

    def decode(self, codes: Sequence[Bytes], own: int) -> None:
        """Write the mean, and subtract what the others have seen."""
        kernels.mean_from_grid(codes, own, *self._format, self._mean, self._corrected)
