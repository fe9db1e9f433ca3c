"""Codes of indices, a checksum and short floats, by their definitions."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Indices = NDArray[np.uint32]


def _pack(bits: NDArray[np.uint8]) -> Bytes:
    words = np.zeros(-(-bits.size // 64) * 64, np.uint8)
    words[: bits.size] = bits
    return np.packbits(words, bitorder="little")


def gap_plan(indices: Indices) -> tuple[int, int]:
    """The r that suits random indices, and the bytes of their section."""
    if indices.size == 0:
        return 0, 0
    range_ = int(indices[-1]) + 1
    bound = 31537 * (2 * range_ - indices.size)  # log(golden ratio) is 31537 / 2^16
    r = next(r for r in range(32) if r == 31 or indices.size << (r + 17) >= bound)
    return r, gap_encode(indices, r).size


def gap_encode(indices: Indices, r: int | None = None) -> Bytes:
    """Golomb-Rice code of the differences of strictly ascending indices."""
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
    """The indices of a section (which is taken to be a good one)."""
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
    """One bit per block, set for those in indices."""
    bits = np.zeros(blocks, np.uint8)
    bits[indices] = 1
    return _pack(bits)


def bitmap_decode(data: Bytes, nnz: int, blocks: int) -> Indices:
    """The positions of the ones (in a good section)."""
    indices = np.flatnonzero(np.unpackbits(data, bitorder="little")[:blocks])
    assert indices.size == nnz
    return indices.astype(np.uint32)


@cache
def _crc_table() -> tuple[int, ...]:
    table = list(range(256))
    for _ in range(8):
        table = [x >> 1 ^ (0x82F63B78 if x & 1 else 0) for x in table]
    return tuple(table)


def crc32c(data: Bytes, crc: int = 0) -> int:
    """CRC-32C of data, going on from crc."""
    crc ^= 0xFFFFFFFF
    for byte in data.tolist():
        crc = crc >> 8 ^ _crc_table()[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def to_half(values: NDArray[np.float32], bfloat: bool = False) -> NDArray[np.uint16]:
    """The bits of values as float16 or bfloat16, to nearest, ties to even."""
    if bfloat:
        x = values.view(np.uint32).astype(np.uint64)
        bits = (x + 0x7FFF + (x >> 16 & 1)) >> 16
        return np.where(np.isnan(values), 0x7FC0, bits).astype(np.uint16)
    with np.errstate(over="ignore", under="ignore"):
        bits = values.astype(np.float16).view(np.uint16)
    return np.where(np.isnan(values), 0x7E00, bits).astype(np.uint16)


def from_half(bits: NDArray[np.uint16], bfloat: bool = False) -> NDArray[np.float32]:
    """The values that have these bits as float16 or bfloat16."""
    if bfloat:
        values = (bits.astype(np.uint32) << 16).view(np.float32)
    else:
        values = bits.view(np.float16).astype(np.float32)
    return np.where(np.isnan(values), np.float32(np.nan), values)
