"""What a quantizer is: a frozen set of settings that codes values and decodes them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Code:
    """Coded values: how many, their bytes, and the shape of the array they were."""

    count: int
    data: NDArray[np.uint8]
    shape: tuple[int, ...] | None = None  # of one dimension, unless said

    @property
    def nbytes(self) -> int:
        """Bytes of the code."""
        return self.data.nbytes

    def __bytes__(self) -> bytes:
        return self.data.tobytes()

    def shaped(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """What was decoded, as the array it was."""
        return values if self.shape is None else values.reshape(self.shape)


class Quantizer(ABC):
    """Codes float32 values in fewer bits; subclasses are frozen dataclasses.

    Attributes:
        biased: Whether the decoded value is off on average; then error feedback is
            needed to train with it.
        keeps_zero: Whether a zero is decoded as a zero. If not, what a stream does not store
            is never coded with the rest, even where that would be shorter.
    """

    biased: ClassVar[bool]
    keeps_zero: ClassVar[bool] = True

    @abstractmethod
    def encode(self, values: Any, seed: int = 0) -> Code:
        """The code of an array of numbers; `seed` decides what is random, if anything is."""

    @abstractmethod
    def decode(self, code: Code) -> NDArray[np.float32]:
        """The values that a code stands for.

        Raises:
            ValueError: If the bytes are no code of so many values.
        """

    @abstractmethod
    def nbytes(self, count: int) -> int:
        """Bytes of the code of so many values; at most so many if lengths vary."""

    def for_sums(self, ranks: int) -> Quantizer:
        """What the owner of a range codes the sum of so many ranks' values with."""
        del ranks
        return self

    @property
    def codes_own(self) -> bool:
        """Whether the owner of a range codes even its own part before it adds.

        That loses precision for nothing, unless sums are meant to be of coded values only:
        votes, or multiples of a step.
        """
        return False

    @property
    @abstractmethod
    def wire_format(self) -> int:
        """Its number in a message's header."""

    @property
    @abstractmethod
    def settings(self) -> bytes:
        """What a reader must know beyond the number: opens the value section."""


def flat(values: Any) -> NDArray[np.float32]:
    """Any array of numbers as float32, in one dimension; too large becomes infinite."""
    with np.errstate(over="ignore", under="ignore"):
        return np.ascontiguousarray(values, np.float32).reshape(-1)


def check_length(code: Code, due: int) -> None:
    """Raise ValueError unless the code has exactly so many bytes."""
    if code.nbytes != due:
        raise ValueError(f"{code.nbytes} bytes where {code.count} values take {due}")
