"""Asymmetric numeral systems: within a hundredth of a bit of the entropy.

A code is the lowest level as i8, the number of different ones from there on less one as u8, two
zero bytes, how frequent each is as u16 (of all together about 65535), zeros up to a multiple of 4
bytes, then the coder's words of 4 bytes.

Coding and decoding is `constriction`'s. Reference: Duda: Asymmetric numeral systems, 2013;
Bamler: Understanding Entropy Coding With Asymmetric Numeral Systems, 2022 (the library).
"""

from __future__ import annotations

import struct
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import buffer_pool
from .base import Coder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .base import Bytes, Levels

HEAD = struct.Struct("<bBH")
TOTAL = 65535
PIECE = 1 << 16  # levels that are decoded at once


class Ans(Coder):
    """Every level by how frequent it is in this very message."""

    def check(self) -> None:
        """The library is an extra."""
        if find_spec("constriction") is None:
            raise ModuleNotFoundError(
                "coder='ans' needs the package constriction: pip install 'sparcml[coders]'"
            )

    def encode(self, levels: Levels) -> Bytes:
        """Frequencies, then words."""
        from constriction.constriction import stream

        lowest, highest = int(levels.min()), int(levels.max())
        symbols = levels.astype(np.int32) - lowest
        found = np.bincount(symbols, minlength=highest - lowest + 1)
        frequencies = np.rint(found * (TOTAL / levels.size)).astype(np.uint16)
        frequencies[(found > 0) & (frequencies == 0)] = 1
        coder = stream.stack.AnsCoder()
        coder.encode_reverse(symbols, _model(frequencies))
        parts = (
            np.frombuffer(HEAD.pack(lowest, highest - lowest, 0), np.uint8),
            frequencies.view(np.uint8),
            np.zeros(frequencies.size % 2 * 2, np.uint8),
            coder.get_compressed().view(np.uint8),
        )
        return buffer_pool.concatenate(parts)

    def decode(self, data: Bytes, count: int) -> Levels:
        """As many levels as there were; the words must be used up exactly."""
        raw = data.tobytes()
        lowest, span, zeros = HEAD.unpack(raw[: HEAD.size].ljust(HEAD.size))
        at = HEAD.size + (span + 1 + (span + 1) % 2) * 2
        if zeros or lowest + span > 127 or len(raw) < at or len(raw) % 4:
            raise ValueError("ans: this is no table of frequencies")
        frequencies = np.frombuffer(raw, np.uint16, span + 1, HEAD.size)
        words = np.frombuffer(raw, np.uint32, offset=at)
        if not (frequencies[0] and frequencies[-1]) or (words.size and not words[-1]):
            raise ValueError("ans: this is no code")
        levels = buffer_pool.empty(count, np.int8)
        if not _fill(levels, lowest, frequencies, words):
            raise ValueError(f"ans: there is more than {count} levels")
        return levels


def _fill(
    levels: Levels, lowest: int, frequencies: NDArray[np.uint16], words: NDArray[np.uint32]
) -> bool:
    """Write the levels, and tell whether that used up all words.

    In pieces: where memory is short the library ends the process, and a few hostile bytes
    can claim to be any number of levels. A coder that is empty stays so, and what it gives
    is the lowest level; so a single level takes no words at all.
    """
    from constriction.constriction import stream

    levels[:] = lowest
    if not words.size or frequencies.size == 1:
        return not words.size
    coder, model = stream.stack.AnsCoder(words), _model(frequencies)
    for at in range(0, levels.size, PIECE):
        part = levels[at : at + PIECE]
        part[:] = coder.decode(model, part.size) + lowest
        if coder.is_empty():
            return True
    return False


def _model(frequencies: NDArray[np.uint16]) -> Any:
    """What the library needs to know; it wants at least two symbols."""
    from constriction.constriction import stream

    shares = np.zeros(max(2, frequencies.size), np.float32)
    shares[: frequencies.size] = frequencies
    return stream.model.Categorical(shares, perfect=False)
