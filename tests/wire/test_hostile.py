"""Law 8: bytes that are no stream raise WireError, and nothing else happens."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    wire,
)
from sparcml.wire import values
from sparcml.wire.header import CRC_AT, SIZE, checksum

from ..laws import sparse

TAG = wire.Tag(call=24, sequence=1)
RNG = np.random.default_rng(11)
GOOD = {
    "gap": sparse(RNG, 5000, 40),
    "u32": Stream(2**31, [3, 2**30], np.array([1, 2], np.float32)),
    "bitmap": sparse(RNG, 200, 80),
    "dense": Stream.from_dense(np.arange(1, 20, dtype=np.float64)),
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


def still_a_stream_or_refused(message):
    try:
        x = wire.decode(message)
    except WireError:
        return
    assert len(x.values) == x.nnz <= x.blocks
    assert (np.diff(x.indices.astype(np.int64)) > 0).all()
    assert x.nnz == 0 or x.indices[-1] < x.blocks


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


@given(st.sampled_from(list(GOOD)), st.data())
def test_changes_under_a_good_checksum_never_break_a_stream(name, data):
    message = encoded(name).copy()
    # Not the size of the vector: that is compared with the receiver's own before decoding.
    where = [i for i in range(min(len(message), 200)) if not 12 <= i < 20]
    for _ in range(data.draw(st.integers(1, 4))):
        message[data.draw(st.sampled_from(where))] = data.draw(st.integers(0, 255))
    still_a_stream_or_refused(resealed(message))


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
    [(0, 0, "magic"), (2, 9, "version"), (8, 3, "dtype"), (9, 7, "index format"),
     (10, 99, "value format"), (10, 255, "length|bytes"), (20, 255, "nnz must|bytes")],
)  # fmt: skip
def test_header_fields(offset, value, why):
    message = encoded("bitmap").copy()
    message[offset] = value
    with pytest.raises(WireError, match=why):
        wire.decode(resealed(message))


@pytest.mark.parametrize("quantizer", [Sign(), Half("bfloat16")], ids=str)
def test_a_signalling_nan_is_read_as_float64_without_a_warning(quantizer):
    section = np.zeros(len(quantizer.settings) + quantizer.nbytes(2), np.uint8)
    code = section[len(quantizer.settings) :]
    if isinstance(quantizer, Sign):
        code[:4] = np.array([0x7F800001], np.uint32).view(np.uint8)
    else:
        code.view(np.uint16)[:] = 0x7F81
    assert np.isnan(values.read(section, 2, np.dtype(np.float64), quantizer)).all()
