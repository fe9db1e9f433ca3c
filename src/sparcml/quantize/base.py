"""Base class and registry of the quantizers.

A quantizer is a frozen dataclass of settings that encodes float32 values in fewer bits. It is
one file in this folder: the class declares a name and its value formats, which registers it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np

from .. import buffer_pool
from ..registry import Registry, short_repr
from .code import Code, as_array, as_float32, check_code, check_out, first_nonfinite

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEEDS = 2**64  # seeds are taken modulo this
MAX_FORMAT = 254  # 0 stands for raw values, 255 for none
NONFINITE = ("raise", "propagate")


_Q = TypeVar("_Q", bound="Quantizer")


@dataclass(frozen=True)
class ScaleRule:
    """Rule by which ranks agree on one scale per parameter before they quantize.

    Attributes:
        clip: Standard deviations at which values are clipped first, or None.
        scale: Fixed scale, or None for the largest magnitude on any rank.
        count_zeros: Whether the standard deviation includes zeros.
    """

    clip: float | None
    scale: float | None
    count_zeros: bool = True


QUANTIZERS: Registry[type[Quantizer]] = Registry("quantizer")


@dataclass(frozen=True)
class Quantizer(ABC):
    """Encoder of float32 values in fewer bits; subclasses are frozen dataclasses.

    Attributes:
        nonfinite: Treatment of NaN and infinity, in all quantizers: "raise" refuses them with a
            ValueError that names the first; "propagate" encodes them so that they are decoded as
            NaN or infinity, never as a number. A value that is finite and too large for float32
            counts as infinity. It is a keyword and no part of the code: quantizers that differ
            in nothing else are equal.
        name: Name on the command line and in tables. A class that defines it is registered.
        wire_formats: Value formats of message headers that the class reads, ascending.
        number: Lowest of `wire_formats`; orders the registry.
        settings_size: Number of bytes of `settings`.
        option: Placeholder of the command line argument after the name, such as "BITS".
        selectable: Whether the command line and tables offer the class.
        preserves_zero: Whether zero decodes to zero. If not, absent entries of a stream are
            never encoded with the others, even where that would be shorter.
        has_scales: Whether the code holds scales of its own, one per bucket.
        published_without_feedback: Whether the method is used without error feedback although
            it may be biased.
        planning_cost: Nanoseconds per value that the planner adds for encoding and decoding.
    """

    nonfinite: str = field(default="raise", kw_only=True, compare=False, repr=False)

    name: ClassVar[str]
    wire_formats: ClassVar[tuple[int, ...]]
    number: ClassVar[int]
    settings_size: ClassVar[int] = 0
    option: ClassVar[str] = ""
    selectable: ClassVar[bool] = True
    preserves_zero: ClassVar[bool] = True
    has_scales: ClassVar[bool] = False
    published_without_feedback: ClassVar[bool] = False
    planning_cost: ClassVar[float] = 0.0

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "name" not in cls.__dict__:
            return
        if not cls.wire_formats:
            raise ValueError(f"register: wire_formats of {cls.name!r} must not be empty")
        others = [q for q in QUANTIZERS.values() if not QUANTIZERS.holds(q.name, cls)]
        taken = {f for q in others for f in q.wire_formats}
        for wire_format in cls.wire_formats:
            if wire_format in taken or not 1 <= wire_format <= MAX_FORMAT:
                raise ValueError(
                    f"register: value format of quantizer {cls.name!r} must be from 1 to "
                    f"{MAX_FORMAT} and not taken, got {wire_format}"
                )
        cls.number = min(cls.wire_formats)
        QUANTIZERS.register(cls.name, cls.number, cls)

    def __post_init__(self) -> None:
        if self.nonfinite not in NONFINITE:
            raise ValueError(
                f"{type(self).__name__}: nonfinite must be {' or '.join(NONFINITE)}, got "
                f"{self.nonfinite!r}"
            )

    def __str__(self) -> str:
        return short_repr(self)

    @classmethod
    def from_option(cls, text: str) -> Self:
        """Build an instance from the part after the colon of a specification such as qsgd:4.

        Raises:
            ValueError: If the text is not a valid argument.
        """
        if text:
            raise ValueError(f"{cls.name}: argument must be empty, got {text!r}")
        return cls()

    @classmethod
    def examples(cls) -> tuple[Quantizer, ...]:
        """Return instances that the test rosters run."""
        return (cls(),)

    @classmethod
    def planned(cls) -> tuple[Quantizer, ...]:
        """Return instances that get rows in the planner."""
        return ()

    @classmethod
    def planned_with_sparsifier(cls) -> tuple[Quantizer, ...]:
        """Return instances that the planner combines with sparsifiers."""
        return ()

    @property
    def label(self) -> str:
        """Name in the tables of the planner."""
        return type(self).__name__

    @property
    def short_label(self) -> str:
        """Name after that of a sparsifier in the tables of the planner."""
        return self.label

    @property
    @abstractmethod
    def biased(self) -> bool:
        """Whether decoded values differ from the input on average."""

    @property
    def scale_rule(self) -> ScaleRule | None:
        """Rule for a scale that all ranks share, or None if the quantizer needs none."""
        return None

    @property
    def quantizes_own(self) -> bool:
        """Whether the owner of a range quantizes its own part before it adds.

        This costs precision. It is needed if sums must consist of quantized values only:
        votes, or multiples of a step.
        """
        return False

    def propagating(self) -> Self:
        """Return the quantizer for values that were checked: it propagates NaN and infinity."""
        return self if self.nonfinite == "propagate" else _propagating(self)

    def for_fused(self) -> Quantizer:
        """Return the quantizer for messages that hold several scaled parameters."""
        return self

    def for_reduced(self, ranks: int) -> Quantizer:
        """Return the quantizer for the sum of the values of `ranks` ranks."""
        del ranks
        return self

    def encode(
        self, values: Any, seed: int = 0, out: NDArray[np.uint8] | None = None
    ) -> Code:
        """Encode values.

        Args:
            values: Real numbers of any shape, or a dense torch tensor. They are converted to
                float32.
            seed: Random seed; quantizers without randomness ignore it.
            out: Array of `nbytes(count)` bytes that receives the code. The code may be
                shorter.

        Raises:
            TypeError: If the values are not real numbers.
            ValueError: If a value is NaN or infinite, unless `nonfinite` is "propagate".
        """
        array = as_array(values)
        flat = as_float32(array)
        self._check_finite(array, flat)
        expected = self.nbytes(flat.size)
        if out is None:
            out = buffer_pool.empty(expected, np.uint8)
        check_out("encode", out, np.uint8)
        if out.shape != (expected,):
            raise ValueError(
                f"encode: out must have {expected} bytes in one dimension for {flat.size} "
                f"values, got {out.size} bytes in {out.ndim} dimensions"
            )
        used = self._write(flat, seed % SEEDS, out)
        return Code(flat.size, out[:used], array.shape)

    def _check_finite(self, array: NDArray[Any], flat: NDArray[np.float32]) -> None:
        """Raise a ValueError for NaN and infinity in float32, unless they are propagated."""
        if self.nonfinite == "raise" and (at := first_nonfinite(flat)) is not None:
            raise ValueError(
                f"encode: values must be finite in float32 for {self}, got "
                f"{array.reshape(-1)[at]} at index {at}; check them, or set "
                f'nonfinite="propagate"'
            )

    def decode(
        self, code: Code, out: NDArray[np.float32] | None = None
    ) -> NDArray[np.float32]:
        """Decode values, in the shape they had.

        Args:
            code: Result of `encode`.
            out: Contiguous float32 array of `code.count` values that receives the result.

        Raises:
            TypeError: If the code is not a `Code`.
            ValueError: If its bytes are not a code of `code.count` values.
        """
        check_code(code)
        expected = self.encoded_nbytes(code.count, code.data)
        if code.nbytes != expected:
            raise ValueError(
                f"decode: code of {code.count} values must have {expected} bytes, got "
                f"{code.nbytes}"
            )
        shape = (code.count,) if code.shape is None else code.shape
        if math.prod(shape) != code.count:
            raise ValueError(f"decode: shape must have {code.count} values, got {shape}")
        if out is None:
            out = buffer_pool.empty(code.count, np.float32).reshape(shape)
        check_out("decode", out, np.float32)
        if out.size != code.count:
            raise ValueError(f"decode: out must have {code.count} values, got {out.size}")
        self._read(code.data, out.reshape(-1))
        return out

    @abstractmethod
    def nbytes(self, count: int) -> int:
        """Return the number of bytes of a code of `count` values, or the maximum."""

    def encoded_nbytes(self, count: int, head: NDArray[np.uint8]) -> int:
        """Return the number of bytes of the code of `count` values that begins with `head`.

        Raises:
            ValueError: If no code begins with these bytes.
        """
        del head
        return self.nbytes(count)

    @abstractmethod
    def _write(
        self, values: NDArray[np.float32], seed: int, out: NDArray[np.uint8]
    ) -> int | None:
        """Write the code to `out`, of `nbytes`, and return the bytes used; None means all."""

    @abstractmethod
    def _read(self, data: NDArray[np.uint8], out: NDArray[np.float32]) -> None:
        """Decode a code of the right length into `out`."""

    @property
    def wire_format(self) -> int:
        """Value format of this instance in message headers."""
        return self.wire_formats[0]

    @property
    def settings(self) -> bytes:
        """Settings that a reader needs; they open the value section of a message."""
        return b""

    @classmethod
    def from_wire(cls, wire_format: int, settings: bytes) -> Quantizer:
        """Return the quantizer of a value format and `settings_size` bytes of settings.

        Raises:
            ValueError: If the settings are invalid.
        """
        del wire_format, settings
        if len(fields(cls)) > len(fields(Quantizer)):
            raise TypeError(
                f"{cls.__name__}: from_wire must be defined for a quantizer with parameters; "
                f"see `settings`"
            )
        return cls()


def from_wire(wire_format: int, section: bytes) -> Quantizer:
    """Return the quantizer of a value section that begins with these bytes.

    Raises:
        ValueError: If the value format is unknown or the settings are invalid.
    """
    for quantizer in QUANTIZERS.values():
        if wire_format in quantizer.wire_formats:
            break
    else:
        raise ValueError(f"value format at offset 10 is unknown: {wire_format}")
    size = quantizer.settings_size
    if len(section) < size:
        raise ValueError(f"value section ends within its {size} bytes of settings")
    return _from_settings(quantizer, wire_format, section[:size])


@lru_cache(maxsize=64)  # all messages of a call have the same settings
def _from_settings(
    quantizer: type[Quantizer], wire_format: int, settings: bytes
) -> Quantizer:
    return quantizer.from_wire(wire_format, settings)


@lru_cache(maxsize=64)  # methods quantize in every step
def _propagating(quantizer: _Q) -> _Q:
    return replace(quantizer, nonfinite="propagate")
