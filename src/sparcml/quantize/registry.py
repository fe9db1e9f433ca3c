"""Which quantizer a message was coded with, from its number and settings."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from . import bitplane, integer
from .half import FORMATS, Half
from .natural import Natural
from .nuqsgd import NUQSGD
from .onebit import OneBit
from .qsgd import QSGD
from .sign import Sign
from .terngrad import TernGrad

if TYPE_CHECKING:
    from collections.abc import Callable

    from .base import Quantizer

HALVES = {number: name for name, number in FORMATS.items()}

# The number in the header -> (bytes of settings, how to read them).
READERS: dict[int, tuple[int, Callable[[bytes], Quantizer]]] = {
    1: (0, lambda _: Half(HALVES[1])),
    2: (0, lambda _: Half(HALVES[2])),
    4: (8, QSGD.from_settings),
    5: (8, NUQSGD.from_settings),
    6: (0, lambda _: TernGrad()),
    7: (0, lambda _: Natural()),
    8: (bitplane.SETTINGS.size, lambda settings: OneBit(bitplane.bucket_of(settings))),
    9: (bitplane.SETTINGS.size, lambda settings: Sign(bitplane.bucket_of(settings))),
    10: (integer.SETTINGS.size, lambda s: integer.Integer(*integer.SETTINGS.unpack(s))),
}


def from_wire(number: int, section: bytes) -> Quantizer:
    """The quantizer of a value section that opens with these bytes.

    Raises:
        ValueError: If there is none such.
    """
    if number not in READERS:
        raise ValueError(f"value format at offset 10 is unknown: {number}")
    size, _ = READERS[number]
    if len(section) < size:
        raise ValueError(f"value section ends within its {size} bytes of settings")
    return _read(number, section[:size])


@lru_cache(maxsize=64)  # every message of a call has the same
def _read(number: int, settings: bytes) -> Quantizer:
    return READERS[number][1](settings)
