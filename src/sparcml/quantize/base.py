"""What a quantizer is: a frozen set of settings that codes values and decodes them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import buffer_pool
from .source import as_array, as_float32, check_out

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEEDS = 2**64  # any whole number is taken modulo this


@dataclass(frozen=True)
class Code:
    """Coded values: how many, their bytes, and the shape of the array they were."""

    count: int
    data: NDArray[np.uint8]
    shape: tuple[int, ...] | None = None  # one dimension unless said

    @property
    def nbytes(self) -> int:
        """Bytes of the code."""
        return self.data.nbytes

    def __bytes__(self) -> bytes:
        return self.data.tobytes()


class Quantizer(ABC):
    """Codes float32 values in fewer bits; subclasses are frozen dataclasses."""

    @property
    @abstractmethod
    def biased(self) -> bool:
        """Whether decoded values are off on average; then training needs error feedback."""

    @property
    def preserves_zero(self) -> bool:
        """Whether a zero is decoded as a zero.

        If not, what a stream does not store is never coded with the rest, even where that
        would be shorter.
        """
        return True

    def encode(
        self, values: Any, seed: int = 0, out: NDArray[np.uint8] | None = None
    ) -> Code:
        """The code of these values.

        Args:
            values: Floats of any shape and type, or a dense torch tensor of them; they are
                coded as float32.
            seed: Decides what is random, if anything is.
            out: Where the bytes go, of `nbytes`; the code may be shorter.

        Raises:
            TypeError: If the values are no real numbers.
        """
        array = as_array(values)
        flat = as_float32(array)
        due = self.nbytes(flat.size)
        if out is None:
            out = buffer_pool.empty(due, np.uint8)
        check_out("encode", out, np.uint8)
        if out.shape != (due,):
            raise ValueError(
                f"encode: out has {out.size} bytes in {out.ndim} dimensions where {flat.size} "
                f"values take {due} in one"
            )
        used = self._write(flat, seed % SEEDS, out)
        return Code(flat.size, out[:used], array.shape)

    def decode(
        self, code: Code, out: NDArray[np.float32] | None = None
    ) -> NDArray[np.float32]:
        """The values that a code stands for, in the shape they had.

        Args:
            code: What `encode` gave.
            out: Where the values go: contiguous float32, as many as were coded.

        Raises:
            ValueError: If the bytes are no code of so many values.
        """
        due = self.length(code.count, code.data)
        if code.nbytes != due:
            raise ValueError(f"{code.nbytes} bytes where {code.count} values take {due}")
        shape = (code.count,) if code.shape is None else code.shape
        if math.prod(shape) != code.count:
            raise ValueError(f"{code.count} values have no shape {shape}")
        if out is None:
            out = buffer_pool.empty(code.count, np.float32).reshape(shape)
        check_out("decode", out, np.float32)
        if out.size != code.count:
            raise ValueError(f"room for {out.size} values where {code.count} were coded")
        self._read(code.data, out.reshape(-1))
        return out

    @abstractmethod
    def nbytes(self, count: int) -> int:
        """Bytes of the code of so many values; at most so many if lengths vary."""

    def length(self, count: int, opening: NDArray[np.uint8]) -> int:
        """Bytes of the code of so many values that begins with these.

        Raises:
            ValueError: If no code does.
        """
        del opening
        return self.nbytes(count)

    def for_reduced(self, ranks: int) -> Quantizer:
        """What the owner of a range codes the sum of so many ranks' values with."""
        del ranks
        return self

    @property
    def quantizes_own(self) -> bool:
        """Whether the owner of a range codes even its own part before it adds.

        That loses precision for nothing, unless sums are meant to be of coded values only:
        votes, or multiples of a step.
        """
        return False

    @abstractmethod
    def _write(
        self, values: NDArray[np.float32], seed: int, out: NDArray[np.uint8]
    ) -> int | None:
        """Fill `out`, of `nbytes`, with the code of these values; seed < 2^64.

        Returns how many bytes it took, if not all.
        """

    @abstractmethod
    def _read(self, data: NDArray[np.uint8], out: NDArray[np.float32]) -> None:
        """Fill `out` with the values of a code of the right length."""

    @property
    @abstractmethod
    def wire_format(self) -> int:
        """Its number in a message's header."""

    @property
    @abstractmethod
    def settings(self) -> bytes:
        """What a reader must know beyond the number: opens the value section."""
