"""What a quantizer is: a frozen set of settings that codes values and decodes them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Code:
    """Coded values: how many, and their bytes."""

    count: int
    data: NDArray[np.uint8]

    @property
    def nbytes(self) -> int:
        """Bytes of the code."""
        return self.data.nbytes

    def __bytes__(self) -> bytes:
        return self.data.tobytes()


class Quantizer(ABC):
    """Codes float32 values in fewer bits; subclasses are frozen dataclasses.

    Attributes:
        biased: Whether the decoded value is off on average; then error feedback is
            needed to train with it.
    """

    biased: ClassVar[bool]

    @abstractmethod
    def encode(self, values: NDArray[np.float32], seed: int = 0) -> Code:
        """The code of these values; `seed` decides what is random, if anything is."""

    @abstractmethod
    def decode(self, code: Code) -> NDArray[np.float32]:
        """The values that a code stands for.

        Raises:
            ValueError: If the bytes are no code of so many values.
        """

    @abstractmethod
    def nbytes(self, count: int) -> int:
        """Bytes of the code of so many values."""

    @property
    @abstractmethod
    def wire_format(self) -> int:
        """Its number in a message's header."""

    @property
    @abstractmethod
    def settings(self) -> bytes:
        """What a reader must know beyond the number: opens the value section."""
