"""Law 8: bytes that are no stream raise WireError, and nothing else happens."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparcml
from sparcml import (
    NUQSGD,
    QSGD,
    Half,
    Integer,
    Natural,
    OneBit,
    Sign,
    Stream,
    TernGrad,
    WireError,
    buffer_pool,
    wire,
)
from sparcml.wire.decoding import MAX_EXPANSION
from sparcml.wire.header import CRC_AT, SIZE, checksum

from ..laws import sparse

TAG = wire.Tag(call=24, sequence=1)
SMALL = 1 << 16  # bytes of Python's own objects, and of checks by parts
RNG = np.random.default_rng(11)
GOOD = {
    "gap": sparse(RNG, 5000, 40),
    "u32": Stream(2**31, [3, 2**30], np.array([1, 2], np.float32)),
    "bitmap": sparse(RNG, 200, 80),
    "dense": Stream.from_dense(np.arange(1, 20, dtype=np.float64)),
    "int64": Stream(300, [2, 9, 200], np.array([-1, 2**62, 7])),
    "float16": sparse(RNG, 900, 31),
    "one bit": sparse(RNG, 900, 35),
    "sign": Stream.from_dense(np.arange(1, 100, dtype=np.float32)),
    "whole": sparse(RNG, 900, 37),
    "elias": sparse(RNG, 900, 90),
    "packed": sparse(RNG, 900, 9),
    "qsgd": sparse(RNG, 900, 35),
    "nuqsgd": sparse(RNG, 900, 36),
    "terngrad": sparse(RNG, 900, 37),
    "natural": sparse(RNG, 900, 38),
    "held dense": Stream.unchecked(500, None, np.array([0, 0, 0, 1, 0] * 100, np.float32)),
}


CODERS = {
    "float16": Half(),
    "one bit": OneBit(10),
    "sign": Sign(),
    "whole": Integer(1.0, 8),
    "elias": QSGD(levels=5, bucket=30, norm="l2", coder="elias"),
    "packed": QSGD(bits=8, coder="elias"),
    "qsgd": QSGD(4, 16),
    "nuqsgd": NUQSGD(3, 16),
    "terngrad": TernGrad(),
    "natural": Natural(),
}


def encoded(name):
    return wire.encode(GOOD[name], TAG, CODERS.get(name))[0]


def resealed(message):
    """With a checksum that fits, as an attacker or a bug in a sender would have it."""
    message = message.copy()
    message[CRC_AT:SIZE] = np.frombuffer(checksum(message).to_bytes(4, "little"), np.uint8)
    return message


def still_a_stream_or_refused(message, limit, **expected):
    """Decode hostile bytes; only WireError, and no more memory than `limit` bytes."""
    buffer_pool.DEFAULT_POOL.release()
    tracemalloc.start()
    try:
        x = wire.decode(message, **expected)
    except WireError:
        return
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak <= limit + SMALL
    assert len(x.values) == x.nnz * x.block
    assert x.nnz <= x.blocks
    assert (np.diff(x.indices.astype(np.int64)) > 0).all()
    assert x.is_dense or x.nnz == 0 or x.indices[-1] < x.blocks


@pytest.mark.parametrize("name", GOOD)
def test_every_flipped_bit_is_noticed(name):
    message = encoded(name)
    for bit in range(8 * min(len(message), 300)):
        bad = message.copy()
        bad[bit // 8] ^= 1 << bit % 8
        with pytest.raises(WireError):
            wire.decode(bad)


@pytest.mark.parametrize("name", GOOD)
def test_every_truncation_is_noticed(name):
    message = encoded(name)
    for length in range(min(len(message), 300)):
        with pytest.raises(WireError):
            wire.decode(message[:length])


@pytest.mark.parametrize("name", GOOD)
def test_appended_bytes_are_noticed(name):
    with pytest.raises(WireError, match="bytes"):
        wire.decode(np.append(encoded(name), np.uint8(0)))


SIZES = st.sampled_from([0, 1, 2**16, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1])


@st.composite
def damaged(draw):
    """A good message with a few changed bytes, huge sizes, or a wrong end."""
    name = draw(st.sampled_from(list(GOOD)))
    message = encoded(name).copy()
    for at in draw(st.sets(st.sampled_from([12, 16, 20, 24, 32, 36]), max_size=3)):
        message[at : at + 4] = np.array([draw(SIZES)], np.uint32).view(np.uint8)[
            : len(message) - at
        ]
    for _ in range(draw(st.integers(0, 4))):
        message[draw(st.integers(0, min(len(message), 200) - 1))] = draw(
            st.integers(0, 255)
        )
    if draw(st.booleans()):
        message = message[: draw(st.integers(SIZE, len(message)))]
    return name, resealed(message)


@given(damaged())
def test_changes_under_a_good_checksum_never_break_a_stream(changed):
    name, message = changed
    still_a_stream_or_refused(message, 2 * MAX_EXPANSION * len(message))
    try:
        header, wanted = wire.Header.read(message), GOOD[name]
        wire.message_length(message)
    except WireError:
        return
    if (header.block, header.dtype) == (wanted.block, wanted.dtype):
        vector = wanted.size * wanted.dtype.itemsize
        limit = 2 * vector + 40 * len(message)
        still_a_stream_or_refused(message, limit, blocks=wanted.blocks)


def test_bytes_are_decoded_as_arrays_are():
    x = sparse(np.random.default_rng(0), 100, 7)
    message, _ = wire.encode(x, TAG)
    for copy in (bytes(message), bytearray(message), memoryview(bytes(message))):
        np.testing.assert_array_equal(wire.decode(copy).to_dense(), x.to_dense())
    with pytest.raises(WireError):
        wire.decode(b"abc")
    wrong: Any
    for wrong in ("text", 3, np.zeros(64), None):
        with pytest.raises(TypeError, match="message must be bytes or a vector of uint8"):
            wire.decode(wrong)


@pytest.mark.parametrize("block", [1, 2**32 - 1])
def test_a_header_of_32_bytes_does_not_ask_for_gigabytes(block):
    Header = wire.Header
    header = Header(TAG, np.dtype(np.float32), 1, 0, 2**32 - 1, block, 0, 0, True)
    message = np.zeros(SIZE, np.uint8)
    header.write(message)
    with pytest.raises(WireError, match="at most 1024 times the 32 bytes"):
        wire.decode(message)
    assert wire.decode(message, as_held=False).nnz == 0  # sparse, so it needs no memory


def test_an_entropy_coded_message_does_not_ask_for_gigabytes():
    x = Stream.from_dense(np.array([127] + [1] * 63, np.float32))
    message = wire.encode(x, TAG, QSGD(8, bucket=None, coder="elias"))[0].copy()
    message[16:20] = np.array([2**26], np.uint32).view(np.uint8)  # block
    message[48:56] = np.array([1, 0], np.uint32).view(np.uint8)  # sparse, without nonzeros
    with pytest.raises(WireError, match="at most 1024 times"):
        wire.decode(resealed(message))


@pytest.mark.parametrize("size", [1000, 100_000])
@pytest.mark.parametrize(
    "shape", [(1, np.float32), (1, np.float64), (50, np.float64)], ids=str
)
def test_a_sender_keeps_within_what_receivers_allow(size, shape):
    block, dtype = shape
    for nnz in (0, 1, 20):
        values = np.zeros(size, dtype)
        values[:nnz] = 1
        x = Stream.unchecked(size, None, values, block)
        message, _ = wire.encode(x, TAG, bounded=True)
        assert len(message) <= SIZE + values.nbytes
        y = wire.decode(message)
        assert y.is_dense
        assert y.values.tobytes() == values.tobytes()


def test_zeros_reach_ranks_that_do_not_know_the_length():
    zeros = np.zeros(100_000)

    def body(comm):
        got = [comm.broadcast(zeros if comm.rank == 1 else None, root=1)]
        got += comm.allgather(zeros[: 50_000 * comm.rank])
        return [(y.shape, y.any()) for y in got]

    want = [((n,), False) for n in (100_000, 0, 50_000, 100_000)]
    assert sparcml.launch(body, 3) == [want] * 3


@given(st.binary(max_size=200))
def test_random_bytes(data):
    with pytest.raises(WireError):
        wire.decode(np.frombuffer(data, np.uint8))


@pytest.mark.parametrize(
    ("indices", "why"),
    [
        ([5, 5], "ascending and below"),
        ([7, 3], "ascending and below"),
        ([1, 2**31], "below"),
    ],
)
def test_indices_that_do_not_ascend_or_fit(indices, why):
    message = encoded("u32").copy()
    message[SIZE : SIZE + 8] = np.array(indices, np.uint32).view(np.uint8)
    with pytest.raises(WireError, match=why):
        wire.decode(resealed(message))


@pytest.mark.parametrize(
    ("offset", "value", "why"),
    [(0, 0, "magic"), (2, 9, "version"), (8, 5, "dtype"), (9, 7, "index format"),
     (10, 99, "value format"), (10, 255, "length|bytes"), (20, 255, "nnz must|bytes")],
)  # fmt: skip
def test_header_fields(offset, value, why):
    message = encoded("bitmap").copy()
    message[offset] = value
    with pytest.raises(WireError, match=why):
        wire.decode(resealed(message))


@pytest.mark.parametrize("dtype", [3, 4])
def test_integers_are_not_quantized(dtype):
    message = encoded("one bit").copy()
    message[8] = dtype
    with pytest.raises(WireError, match="a quantizer must encode floats, got int"):
        wire.decode(resealed(message))


@pytest.mark.parametrize("quantizer", [Sign(), Half("bfloat16")], ids=str)
def test_a_signalling_nan_is_read_as_float64_without_a_warning(quantizer):
    message = wire.encode(Stream.from_dense(np.ones(2)), TAG, quantizer)[0].copy()
    code = message[SIZE + len(quantizer.settings) :]
    if isinstance(quantizer, Sign):
        code[:4] = np.array([0x7F800001], np.uint32).view(np.uint8)
    else:
        code[:] = np.full(2, 0x7F81, np.uint16).view(np.uint8)
    assert np.isnan(wire.decode(resealed(message)).values).all()
