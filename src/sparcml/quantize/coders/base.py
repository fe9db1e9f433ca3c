"""What a coder is: levels to bytes and back, losing nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Levels = NDArray[np.int8]
    Bytes = NDArray[np.uint8]


class Coder(ABC):
    """Codes levels, of which small ones are frequent."""

    def check(self) -> None:
        """Raise ModuleNotFoundError if a package that it needs is not here."""
        return

    @abstractmethod
    def encode(self, levels: Levels) -> Bytes:
        """The code of these levels, of which there is at least one."""

    @abstractmethod
    def decode(self, data: Bytes, count: int) -> Levels:
        """So many levels.

        Raises:
            ValueError: If the bytes are no code of so many.
        """
