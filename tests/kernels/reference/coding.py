"""Codes of indices and levels, a checksum and 16-bit floats, defined in NumPy.

Elias codes are strings of "0" and "1".
"""

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Indices = NDArray[np.uint32]
Levels = NDArray[np.int8]


def _pack(bits: NDArray[np.uint8]) -> Bytes:
    words = np.zeros(-(-bits.size // 64) * 64, np.uint8)
    words[: bits.size] = bits
    return np.packbits(words, bitorder="little")


def gap_plan(indices: Indices) -> tuple[int, int]:
    """Return the Rice parameter for random indices, and the bytes of their section."""
    if indices.size == 0:
        return 0, 0
    range_ = int(indices[-1]) + 1
    bound = 31537 * (2 * range_ - indices.size)  # log(golden ratio) is 31537 / 2^16
    r = next(r for r in range(32) if r == 31 or indices.size << (r + 17) >= bound)
    return r, gap_encode(indices, r).size


def gap_encode(indices: Indices, r: int | None = None) -> Bytes:
    """Return the Golomb-Rice code of the differences between ascending indices."""
    if indices.size == 0:
        return np.empty(0, np.uint8)
    r = gap_plan(indices)[0] if r is None else r
    wide = indices.astype(np.int64)
    gaps = wide - np.append(-1, wide[:-1]) - 1
    low = (gaps[:, None] >> np.arange(r) & 1).astype(np.uint8).ravel()
    high = np.zeros(int(np.sum((gaps >> r) + 1)), np.uint8)
    high[np.cumsum((gaps >> r) + 1) - 1] = 1
    head = np.array([r, 0, 0, 0, 0, 0, 0, 0], np.uint8)
    return np.concatenate([head, _pack(low), _pack(high)])


def gap_decode(data: Bytes, nnz: int, blocks: int) -> Indices:
    """Return the indices of a valid section."""
    if nnz == 0:
        return np.empty(0, np.uint32)
    r = int(data[0])
    bits = np.unpackbits(data[8:], bitorder="little")
    low = bits[: nnz * r].reshape(nnz, r) @ (1 << np.arange(r, dtype=np.int64))
    high = np.flatnonzero(bits[-(-nnz * r // 64) * 64 :]) - np.arange(nnz)
    indices: NDArray[np.int64] = (high << r) + np.cumsum(low) + np.arange(nnz)
    assert indices[-1] < blocks
    return indices.astype(np.uint32)


def bitmap_encode(indices: Indices, blocks: int) -> Bytes:
    """Return one bit per block, set for those in `indices`."""
    bits = np.zeros(blocks, np.uint8)
    bits[indices] = 1
    return _pack(bits)


def elias_gamma(x: int) -> str:
    """Return one zero per bit of x after its first, then x in binary."""
    return "0" * (x.bit_length() - 1) + f"{x:b}"


def elias_omega(x: int) -> str:
    """Return the recursive code: x in binary, preceded by the code of its length."""
    word = "0"
    while x > 1:
        word = f"{x:b}" + word
        x = x.bit_length() - 1
    return word


def read_omega(bits: Iterator[str]) -> int:
    """Return the number whose omega code comes next."""
    x = 1
    while next(bits) == "1":
        x = int("1" + "".join(next(bits) for _ in range(x)), 2)
    return x


def elias_dense(levels: Levels) -> str:
    """Return the omega code of each |level| + 1, and a sign unless the level is zero.

    This is Code'_s of the QSGD paper without its norm.
    """
    sign = {-1: "1", 0: "", 1: "0"}
    return "".join(elias_omega(abs(x) + 1) + sign[np.sign(x)] for x in levels.tolist())


def elias_sparse(levels: Levels) -> str:
    """Return the gap, sign and magnitude of each nonzero level.

    This is Code_s of the QSGD paper without its norm.
    """
    word, before = "", -1
    for i in np.flatnonzero(levels).tolist():
        level = int(levels[i])
        word += elias_omega(i - before) + ("1" if level < 0 else "0")
        word += elias_omega(abs(level))
        before = i
    return word


def read_elias_dense(word: str, count: int) -> Levels:
    """Return the `count` levels of a code of `elias_dense`."""
    bits, levels = iter(word), np.zeros(count, np.int8)
    for i in range(count):
        if size := read_omega(bits) - 1:
            levels[i] = -size if next(bits) == "1" else size
    return levels


def read_elias_sparse(word: str, nonzeros: int, count: int) -> Levels:
    """Return `count` levels, `nonzeros` of them from a code of `elias_sparse`."""
    bits, levels, at = iter(word), np.zeros(count, np.int8), -1
    for _ in range(nonzeros):
        at += read_omega(bits)
        negative = next(bits) == "1"
        size = read_omega(bits)
        levels[at] = -size if negative else size
    return levels


def pack_word(word: str) -> Bytes:
    """Return a string of bits as words of 8 bytes, from the lowest bit of the first byte."""
    return _pack(np.frombuffer(word.encode(), np.uint8) - ord("0"))


@cache
def _crc_table() -> tuple[int, ...]:
    table = list(range(256))
    for _ in range(8):
        table = [x >> 1 ^ (0x82F63B78 if x & 1 else 0) for x in table]
    return tuple(table)


def crc32c(data: Bytes, crc: int = 0) -> int:
    """Return the CRC-32C of the data, continued from `crc`."""
    crc ^= 0xFFFFFFFF
    for byte in data.tolist():
        crc = crc >> 8 ^ _crc_table()[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def to_half(values: NDArray[np.float32], bfloat: bool = False) -> NDArray[np.uint16]:
    """Return the bits of values as float16 or bfloat16, rounded to nearest even."""
    if bfloat:
        x = values.view(np.uint32).astype(np.uint64)
        bits = (x + 0x7FFF + (x >> 16 & 1)) >> 16
        return np.where(np.isnan(values), 0x7FC0, bits).astype(np.uint16)
    with np.errstate(over="ignore", under="ignore"):
        bits = values.astype(np.float16).view(np.uint16)
    return np.where(np.isnan(values), 0x7E00, bits).astype(np.uint16)


def from_half(bits: NDArray[np.uint16], bfloat: bool = False) -> NDArray[np.float32]:
    """Return the values with these bits as float16 or bfloat16."""
    if bfloat:
        values = (bits.astype(np.uint32) << 16).view(np.float32)
    else:
        values = bits.view(np.float16).astype(np.float32)
    return np.where(np.isnan(values), np.float32(np.nan), values)
