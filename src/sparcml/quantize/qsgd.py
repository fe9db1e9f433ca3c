"""QSGD (Alistarh et al., 2017): each value at random to one of its neighbours on a grid."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .. import buffer_pool, kernels
from ..validation import check_bits, check_bucket, check_integer
from .base import SEEDS, Quantizer, bucket_size, parse_bits
from .coders import CODERS, frame, name_of, number_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Levels = tuple[NDArray[np.float32], NDArray[np.int8]]

SETTINGS = struct.Struct("<BBBBI")  # bits, levels, norm, coder, bucket (0: whole vector)
NORMS = {"max": kernels.MAX_NORM, "l2": kernels.L2_NORM}
DEFAULT_BITS = 8
NAN = -128  # a level that stands for it
NAMES = {number: name for name, number in NORMS.items()}


@dataclass(frozen=True)
class QSGD(Quantizer):
    """Whole multiples of norm / s, chosen at random so that the mean is the value.

    With x = s |v| / norm, the level is floor(x) or the next, the latter with probability
    x - floor(x). NaN stays NaN; an infinity spoils its bucket (infinities and NaN come
    out).

    Attributes:
        bits: Of a code, with its sign: 2 to 8. If `levels` are given they decide the width,
            and `bits` must be that or left out.
        bucket: Consecutive values that share a norm; None for the whole vector.
        norm: "max", the largest magnitude, or "l2", the length.
        levels: s, levels above zero, 1 to 127; None is all that `bits` have room for, and
            what so many levels become.
        coder: How levels are stored: None, packed to `bits` each; "elias", the paper's code;
            "ans", close to their entropy, which needs the extra `coders`. For slow links: a
            coder takes far longer than packing.
    """

    bits: int = DEFAULT_BITS
    bucket: int | None = 1024
    norm: str = "max"
    levels: int | None = None
    coder: str | None = None

    name = "qsgd"
    wire_formats = (4,)
    settings_size = SETTINGS.size
    option = "BITS"
    has_scales = True
    biased: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_bits(self)
        check_integer(self, "levels", optional=True)
        if self.levels is not None:
            self._settle(self.levels)
        check_bucket(self)
        if self.norm not in NORMS:
            raise ValueError(f"QSGD: norm must be 'max' or 'l2', got {self.norm!r}")
        number_of(self.coder)

    @classmethod
    def from_option(cls, text: str) -> QSGD:
        """Build an instance from qsgd:BITS."""
        return cls(parse_bits(cls.name, text)) if text else cls()

    def _settle(self, levels: int) -> None:
        """Take the width from the levels; `QSGD(levels=7)` is `QSGD(bits=4)`."""
        if not 1 <= levels <= 127:
            raise ValueError(f"QSGD: levels must be 1 to 127, got {levels}")
        bits = 1 + levels.bit_length()
        if self.bits not in (bits, DEFAULT_BITS):
            raise ValueError(
                f"QSGD: {levels} levels take {bits} bits, got bits={self.bits}; leave bits out"
            )
        object.__setattr__(self, "bits", bits)
        if levels == most_levels(bits):
            object.__setattr__(self, "levels", None)

    @property
    def s(self) -> int:
        """Levels above zero."""
        return most_levels(self.bits) if self.levels is None else self.levels

    def nbytes(self, count: int) -> int:
        """Four a bucket, and `bits` a value; at most so many, and 8, with a coder."""
        packed = kernels.grid_nbytes(count, bucket_size(self.bucket, count), self.bits)
        return packed if self.coder is None else packed + frame.SIZE

    def encoded_nbytes(self, count: int, head: NDArray[np.uint8]) -> int:
        """With a coder, the code tells."""
        most = self.nbytes(count)
        if self.coder is None:
            return most
        return frame.length(head, self._norm_bytes(count), most)

    def omega(self, size: int) -> float:
        """E||Q(v) - v||^2 <= omega ||v||^2 for vectors of so many values."""
        d = min(size, bucket_size(self.bucket, size))
        if self.norm == "l2":
            return min(d / self.s**2, math.sqrt(d) / self.s)
        return omega_of_max(d, self.s)

    def quantize(self, values: NDArray[np.float32], seed: int = 0) -> Levels:
        """The norm of each bucket, and each value's level: -s to s, or -128 for NaN.

        These are what `encode` packs, for those who store them in another way.
        """
        bucket = bucket_size(self.bucket, values.size)
        kind = NORMS[self.norm]
        code = kernels.to_grid(values, bucket, self.s, 8, kind, seed=seed % SEEDS)
        at = code.size - values.size
        return code[:at].view(np.float32), code[at:].view(np.int8)

    def dequantize(
        self,
        norms: NDArray[np.float32],
        levels: NDArray[np.int8],
        out: NDArray[np.float32] | None = None,
    ) -> NDArray[np.float32]:
        """The values of these levels."""
        code = buffer_pool.concatenate((norms.view(np.uint8), levels.view(np.uint8)))
        bucket = bucket_size(self.bucket, levels.size)
        return kernels.from_grid(code, levels.size, bucket, self.s, 8, out)

    def _norm_bytes(self, count: int) -> int:
        return 4 * -(-count // bucket_size(self.bucket, count))

    def _write(
        self, values: NDArray[np.float32], seed: int, out: NDArray[np.uint8]
    ) -> int | None:
        """Norms, then levels."""
        if self.coder is not None:
            _, coder = CODERS[self.coder]
            used = frame.write(coder, *self.quantize(values, seed), out)
            if used is not None:
                return used
            out = out[frame.SIZE :]
        bucket, kind = bucket_size(self.bucket, values.size), NORMS[self.norm]
        kernels.to_grid(values, bucket, self.s, self.bits, kind, seed=seed, out=out)
        return None

    def _read(self, data: NDArray[np.uint8], out: NDArray[np.float32]) -> None:
        """Multiples of norm / s."""
        if self.coder is not None:
            if frame.is_coded(data):
                self._read_coded(data, out)
                return
            data = data[frame.SIZE :]
        bucket = bucket_size(self.bucket, out.size)
        kernels.from_grid(data, out.size, bucket, self.s, self.bits, out)

    def _read_coded(self, data: NDArray[np.uint8], out: NDArray[np.float32]) -> None:
        assert self.coder is not None
        _, coder = CODERS[self.coder]
        norms, levels = frame.read(coder, data, self._norm_bytes(out.size), out.size)
        beyond = (levels > self.s) | (levels < -self.s) & (levels != NAN)
        if beyond.any():
            raise ValueError(f"QSGD: a level beyond {self.s}")
        self.dequantize(norms, levels, out)

    @property
    def settings(self) -> bytes:
        """Bits, levels, norm, coder and bucket."""
        norm, coder = NORMS[self.norm], number_of(self.coder)
        return SETTINGS.pack(self.bits, self.s, norm, coder, self.bucket or 0)

    @classmethod
    def from_wire(cls, wire_format: int, settings: bytes) -> QSGD:
        """Return the quantizer of these settings."""
        del wire_format
        bits, levels, norm, coder, bucket = SETTINGS.unpack(settings)
        if norm not in NAMES:
            raise ValueError(f"QSGD: norm {norm} is unknown")
        made = cls(bits, bucket or None, NAMES[norm], levels, name_of(coder))
        if made.bits != bits:
            raise ValueError(f"QSGD: {levels} levels do not take {bits} bits")
        return made


def most_levels(bits: int) -> int:
    """Above zero, that go in so many bits."""
    return int(2 ** (bits - 1) - 1)


def omega_of_max(d: int, s: int) -> float:
    """The largest variance of d values for their squared length, by the largest magnitude.

    In steps of norm / s, the largest value has length s and no error; one at x below the
    first step has the variance x (1 - x), and above it less for its length. The worst d - 1
    such values have x = 1 / (2 + 2 omega), where 4 s^2 omega (1 + omega) = d - 1.
    """
    return (math.sqrt(1 + max(0, d - 1) / s**2) - 1) / 2
