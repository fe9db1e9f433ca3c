"""Decoding into a range of a dense stream is decoding, then writing the dense form."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparcml import QSGD, Half, Natural, Stream, WireError, wire
from sparcml.stream.densify import densify
from sparcml.wire.header import BITMAP, DENSE, GAP, INDEX_FORMATS, U32

from .test_hostile import resealed

TAG = wire.Tag(call=24, sequence=1)
BEFORE, AFTER = 5, 70  # blocks of the vector around the range
NNZ = {U32: 1, GAP: 20, BITMAP: 120, DENSE: 200}
OUTSIDE = 77.0


def part(kind, block=1, dtype=np.float32, fill=0.0, held_dense=False, blocks=200):
    """A range whose cheapest index format is that one."""
    rng = np.random.default_rng(kind)
    where = np.sort(rng.choice(blocks, NNZ[kind], replace=False)).astype(np.uint32)
    values = rng.choice([1.5, -2.25, -0.0, np.inf, 3.0], len(where) * block).astype(dtype)
    x = Stream.unchecked(blocks * block, where, values, block, fill)
    return densify(x) if held_dense else x


def encoded(x, coder=None):
    message, _ = wire.encode(x, TAG, coder, whole=BEFORE + x.blocks + AFTER)
    return message


def around(x):
    """A vector of which x is a range."""
    blocks = BEFORE + x.blocks + AFTER
    values = np.full(blocks * x.block, OUTSIDE, x.dtype)
    return Stream.unchecked(len(values), None, values, x.block, x.fill)


def decode_into(whole, message, blocks):
    wire.decode_into(whole, BEFORE, message, wire.Header.read(message), blocks)


def parted(whole, x):
    start, end = BEFORE * x.block, (BEFORE + x.blocks) * x.block
    values = whole.raw_values
    return values[start:end], np.append(values[:start], values[end:])


@pytest.mark.parametrize("held_dense", [False, True])
@pytest.mark.parametrize("fill", [0.0, -0.0, np.inf, 1.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("block", [1, 3])
@pytest.mark.parametrize("kind", NNZ, ids=INDEX_FORMATS.get)
def test_every_format(kind, block, dtype, fill, held_dense):
    x = part(kind, block, dtype, fill, held_dense)
    for coder in (None, Half(), Half("bfloat16"), QSGD(3, 16), Natural()):
        if coder is not None and kind != DENSE:
            x = Stream.unchecked(x.size, x.raw_indices, abs(x.raw_values), block, fill)
        message = encoded(x, coder)
        assert wire.Header.read(message).index_format == kind or coder or held_dense
        want = densify(wire.decode(message, fill, blocks=x.blocks)).raw_values
        unaligned = np.append(np.uint8(0), message)[1:]
        for bytes_ in (message, unaligned):
            whole = around(x)
            decode_into(whole, bytes_, x.blocks)
            inside, outside = parted(whole, x)
            assert inside.tobytes() == want.tobytes()
            assert (outside == OUTSIDE).all()


@pytest.mark.parametrize("blocks", [0, 1, 63, 64, 65, 128, 1000])
def test_ranges_of_every_length(blocks):
    values = np.where(np.arange(blocks) % 3 == 0, 0, 2.5).astype(np.float32)
    x = Stream.unchecked(blocks, None, values)
    whole = around(x)
    decode_into(whole, encoded(x), blocks)
    inside, outside = parted(whole, x)
    assert inside.tobytes() == values.tobytes()
    assert (outside == OUTSIDE).all()


def refused(message, x):
    whole = around(x)
    with pytest.raises(WireError):
        decode_into(whole, message, x.blocks)
    assert (parted(whole, x)[1] == OUTSIDE).all()


@pytest.mark.parametrize("coder", [None, Half(), QSGD(8, 16)], ids=str)
@pytest.mark.parametrize("kind", NNZ, ids=INDEX_FORMATS.get)
def test_damage_is_noticed(kind, coder):
    x = part(kind)
    message = encoded(x, coder)
    for bit in range(8 * min(len(message), 120)):
        bad = message.copy()
        bad[bit // 8] ^= 1 << bit % 8
        refused(bad, x)
    for length in range(min(len(message), 120)):
        refused(message[:length], x)
    refused(np.append(message, np.uint8(0)), x)


@pytest.mark.parametrize("kind", NNZ, ids=INDEX_FORMATS.get)
def test_ranges_of_another_length_type_or_block(kind):
    x = part(kind)
    message = encoded(x)
    refused(message, part(kind, dtype=np.float64))
    refused(message, part(kind, block=4, blocks=50 + NNZ[kind]))
    longer = part(kind, blocks=300)
    if kind in (DENSE, BITMAP):
        refused(message, longer)
    refused(wire.header_only(x, TAG), x)


@given(st.sampled_from(list(NNZ)), st.booleans(), st.data())
def test_changes_under_a_good_checksum_stay_in_the_range(kind, held_dense, data):
    x = part(kind, held_dense=held_dense)
    message = encoded(x).copy()
    for _ in range(data.draw(st.integers(1, 4))):
        where = data.draw(st.integers(0, min(len(message), 120) - 1))
        message[where] = data.draw(st.integers(0, 255))
    whole = around(x)
    with suppress(WireError):
        decode_into(whole, resealed(message), x.blocks)
    assert (parted(whole, x)[1] == OUTSIDE).all()


def test_planes_that_lie():
    """More ones than values, ones beyond the end, and fewer."""
    x = part(BITMAP)
    message = encoded(x)
    for at, change in ((32, 0xFF), (32, 0x00), (32 + 25, 0x01), (32 + 31, 0x80)):
        bad = message.copy()
        bad[at] = change
        assert bad[at] != message[at]
        bad = resealed(bad)
        with pytest.raises(WireError, match="bitmap"):
            decode_into(around(x), bad, x.blocks)
        with pytest.raises(WireError, match="bitmap"):
            wire.decode(bad, blocks=x.blocks)


def test_a_header_that_was_read_is_verified_all_the_same():
    message = encoded(part(GAP))
    header = wire.Header.read(message)
    assert wire.verify(message, header) == wire.verify(message) == header
    bad = message.copy()
    bad[-1] ^= 1
    with pytest.raises(WireError, match="checksum"):
        wire.verify(bad, header)
    with pytest.raises(WireError, match="bytes"):
        wire.verify(message[:-1], header)
