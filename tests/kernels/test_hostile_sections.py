"""Any bytes are refused or give indices that could have been meant; none crash."""

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sparcml import Stream, WireError, wire
from sparcml.kernels import coding
from sparcml.wire.header import BITMAP, RAW, SIZE
from tests.kernels.reference import coding as reference

from .indices import LIMIT, blocks_of, quick, random_indices
from .reduction_data import guarded, intact

pytestmark = pytest.mark.usefixtures("isa")

Decode = Callable[[NDArray[np.uint8], int, int], NDArray[np.uint32]]


def with_bitmap(section, nnz, blocks, dtype=np.float32):
    """A message of `nnz` ones with this bitmap and a checksum that fits."""
    values = np.ones(nnz, dtype).view(np.uint8)
    message = np.concatenate([np.zeros(SIZE, np.uint8), section, values])
    tag, most = wire.Tag(1, 2), max(blocks, nnz)
    wire.Header(tag, np.dtype(dtype), BITMAP, RAW, most, 1, nnz, section.size).write(
        message
    )
    return message


def expand(section, nnz, out):
    """Decode a message with this bitmap into an array."""
    message = with_bitmap(section, nnz, out.size, out.dtype)
    whole = Stream.unchecked(out.size, None, out)
    wire.decode_into(whole, 0, message, wire.Header.read(message), out.size)


def attempt(decode: Decode, data: NDArray[np.uint8], nnz: int, blocks: int) -> None:
    """A refusal, or indices that could have been meant."""
    try:
        indices = decode(np.ascontiguousarray(data), nnz, blocks)
    except ValueError:
        return
    assert indices.size == nnz
    wide = indices.astype(np.int64)
    assert np.all(np.diff(wide) > 0)
    assert nnz == 0 or (wide[0] >= 0 and wide[-1] < blocks)


@pytest.mark.parametrize("kind", ["gap", "bitmap"])
@pytest.mark.parametrize("n", [1, 9, 150])
def test_hostile_changes(kind, n):
    indices = random_indices(n, 0.1)
    blocks = blocks_of(indices) + 3
    if kind == "gap":
        section, decode = coding.gap_encode(indices), coding.gap_decode
    else:
        section, decode = reference.bitmap_encode(indices, blocks), coding.bitmap_decode
    for end in range(section.size):
        with pytest.raises(ValueError, match=kind):
            decode(section[:end], n, blocks)
    for extra in range(1, 25):
        for byte in (0, 1, 255):
            longer = np.append(section, np.full(extra, byte, np.uint8))
            with pytest.raises(ValueError, match=kind):
                decode(longer, n, blocks)
    for bit in range(8 * section.size):
        changed = section.copy()
        changed[bit // 8] ^= 1 << bit % 8
        attempt(decode, changed, n, blocks)
    for nnz in (0, n - 1, n + 1, 2 * n, 8 * section.size, LIMIT, 2**60):
        with pytest.raises(ValueError, match=kind):
            decode(section, nnz if nnz != n else n + 1, blocks)


@quick
@given(
    st.binary(max_size=200),
    st.one_of(st.integers(0, 40), st.integers(0, 31)),
    st.integers(0, 300),
    st.one_of(st.integers(0, 4000), st.integers(0, LIMIT)),
)
def test_hostile_bytes(data, r, nnz, blocks):
    raw = np.frombuffer(data, np.uint8)
    attempt(coding.bitmap_decode, raw, nnz, min(blocks, 64 * (raw.size // 8)))
    padded = np.concatenate([np.array([r, *[0] * 7], np.uint8), raw])
    for section in (raw, padded, padded[: padded.size // 8 * 8]):
        attempt(coding.gap_decode, section, nnz, blocks)
        ones = np.unpackbits(section[8 + -(-nnz * r // 64) * 8 :]).sum()
        attempt(coding.gap_decode, section, int(ones), blocks)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 9, 150])
def test_hostile_planes(n, dtype):
    """Refused before anything is written, or as many ones as there are values."""
    indices = random_indices(n, 0.4)
    size = blocks_of(indices) + 3
    plane = reference.bitmap_encode(indices, size)

    def refused(section, count, length):
        out = guarded(length, dtype)
        before = out.tobytes()
        with pytest.raises(WireError, match=r"bitmap|multiple of 8|nnz"):
            expand(section, count, out)
        assert out.tobytes() == before
        assert intact(out)

    for end in range(plane.size):
        refused(plane[:end], n, size)
    for extra in (1, 7, 8, 9, 64):
        refused(np.append(plane, np.zeros(extra, np.uint8)), n, size)
    for count in {0, n - 1, n + 1, size, size + 1, 8 * plane.size} - {n}:
        refused(plane, count, size)
    for length in {0, size - 64, size + 64, int(indices[-1])} - {size}:
        if length >= 0:
            refused(plane, n, length)
    for bit in range(8 * plane.size):
        changed = plane.copy()
        changed[bit // 8] ^= 1 << bit % 8
        refused(changed, n, size)
        if bit < size:
            out = guarded(size, dtype)
            ones = int(np.unpackbits(changed).sum())
            expand(changed, ones, out)
            assert out.sum() == ones
            assert intact(out)
        else:
            refused(changed, n + 1, size)  # beyond the end


@quick
@given(st.binary(max_size=200), st.integers(0, 1700), st.integers(0, 1700))
def test_hostile_bytes_as_planes(data, count, size):
    plane = np.frombuffer(data, np.uint8)
    whole = plane[: plane.size // 8 * 8]
    ones = int(np.unpackbits(whole).sum())
    for section, n, length in (
        (plane, count, size),
        (whole, count, 8 * whole.size),
        (whole, ones, 8 * whole.size),
        (whole, ones, max(0, 8 * whole.size - size % 64)),
    ):
        out = guarded(length, np.float32)
        with suppress(WireError):
            expand(section, n, out)
            assert out.sum() == n
        assert intact(out)
