"""Elias's codes, as strings of bits."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


def gamma(x: int) -> str:
    """As many zeros as x has bits after its first, then x in binary."""
    return "0" * (x.bit_length() - 1) + f"{x:b}"


def omega(x: int) -> str:
    """The recursive code: before x in binary the length of that, and so on."""
    word = "0"
    while x > 1:
        word = f"{x:b}" + word
        x = x.bit_length() - 1
    return word


def read_omega(bits: Iterator[str]) -> int:
    """The number whose code comes next."""
    x = 1
    while next(bits) == "1":
        x = int("1" + "".join(next(bits) for _ in range(x)), 2)
    return x


def dense(levels: NDArray[np.int8]) -> str:
    """Code'_s without its norm: each level + 1, and a sign unless it is zero."""
    sign = {-1: "1", 0: "", 1: "0"}
    return "".join(omega(abs(x) + 1) + sign[np.sign(x)] for x in levels.tolist())


def sparse(levels: NDArray[np.int8]) -> str:
    """Code_s without its norm: gap, sign and size of what is not zero."""
    word, before = "", -1
    for i in np.flatnonzero(levels).tolist():
        level = int(levels[i])
        word += omega(i - before) + ("1" if level < 0 else "0") + omega(abs(level))
        before = i
    return word


def read_dense(word: str, count: int) -> NDArray[np.int8]:
    """So many levels."""
    bits, levels = iter(word), np.zeros(count, np.int8)
    for i in range(count):
        if size := read_omega(bits) - 1:
            levels[i] = -size if next(bits) == "1" else size
    return levels


def read_sparse(word: str, nonzeros: int, count: int) -> NDArray[np.int8]:
    """So many levels, of which `nonzeros` are coded."""
    bits, levels, at = iter(word), np.zeros(count, np.int8), -1
    for _ in range(nonzeros):
        at += read_omega(bits)
        negative = next(bits) == "1"
        size = read_omega(bits)
        levels[at] = -size if negative else size
    return levels


def packed(word: str) -> NDArray[np.uint8]:
    """The bits from the lowest of the first byte on, in words of 8 bytes."""
    bits = np.frombuffer(word.encode(), np.uint8) - ord("0")
    padded = np.zeros(-(-bits.size // 64) * 64, np.uint8)
    padded[: bits.size] = bits
    return np.packbits(padded, bitorder="little")
