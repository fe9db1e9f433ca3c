"""Codes of levels in about as many bits as they tell: one file a coder.

They are slower than packing levels to a fixed width, and for links so slow that it pays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import frame as frame
from .ans import Ans
from .elias import Elias

if TYPE_CHECKING:
    from .base import Coder

# A coder's name -> its number in the settings of a quantizer, and the coder.
CODERS: dict[str, tuple[int, Coder]] = {"elias": (1, Elias()), "ans": (2, Ans())}


def number_of(name: str | None) -> int:
    """A coder's number; 0 is none.

    Raises:
        ValueError: If there is none such.
        ModuleNotFoundError: If it needs a package that is not here.
    """
    if name is None:
        return 0
    if name not in CODERS:
        raise ValueError(f"coder must be None, {' or '.join(CODERS)}, got {name!r}")
    number, coder = CODERS[name]
    coder.check()
    return number


def name_of(number: int) -> str | None:
    """The coder with this number; ValueError if there is none."""
    if number == 0:
        return None
    for name, (known, _) in CODERS.items():
        if known == number:
            return name
    raise ValueError(f"coder {number} is unknown")
