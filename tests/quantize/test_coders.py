"""Coders of levels: lossless, never longer than packed levels, safe to decode."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sparcml import QSGD
from sparcml.quantize import Code, coders
from sparcml.quantize.coders import CODERS

pytestmark = pytest.mark.parametrize("coder", CODERS)


def gaussian(size, seed=0):
    return np.random.default_rng(seed).standard_normal(size).astype(np.float32)


@given(levels=hnp.arrays(np.int8, st.integers(1, 400)))
def test_nothing_is_lost(coder, levels):
    code = CODERS[coder].encode_levels(levels)
    if code is None:
        assert (levels == -128).any()  # NaN
    else:
        found = CODERS[coder].decode_levels(code, levels.size)
        np.testing.assert_array_equal(found, levels)


@pytest.mark.parametrize("level", [0, 1, -3, 127])
@pytest.mark.parametrize("size", [1, 2, 1000])
def test_levels_that_are_all_the_same(coder, level, size):
    levels = np.full(size, level, np.int8)
    code = CODERS[coder].encode_levels(levels)
    assert code is not None
    np.testing.assert_array_equal(CODERS[coder].decode_levels(code, size), levels)


@pytest.mark.parametrize("settings", [{"levels": 32}, {"bits": 2}, {"bits": 8}])
@pytest.mark.parametrize("bucket", [1024, 100, None])
@pytest.mark.parametrize("norm", ["max", "l2"])
def test_the_same_values_as_without_a_coder(coder, settings, bucket, norm):
    values = gaussian(5000)
    plain = QSGD(bucket=bucket, norm=norm, **settings)
    coded = QSGD(bucket=bucket, norm=norm, **settings, coder=coder)
    code = coded.encode(values, seed=3)
    np.testing.assert_array_equal(
        coded.decode(code), plain.decode(plain.encode(values, seed=3))
    )
    assert code.nbytes <= coded.nbytes(5000) == plain.nbytes(5000) + coders.PAIR.size


def test_levels_that_cannot_be_coded_shorter_are_packed(coder):
    values = np.random.default_rng(0).uniform(-1, 1, 3000).astype(np.float32)
    quantizer = QSGD(8, coder=coder)
    code = quantizer.encode(values)
    assert not coders.is_encoded(code.data)
    assert code.nbytes == quantizer.nbytes(3000)
    assert np.abs(quantizer.decode(code) - values).max() < 1 / 127


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_number_never_becomes_one(coder, bad):
    values = gaussian(3000)
    values[1500] = bad
    quantizer = QSGD(4, coder=coder, nonfinite="propagate")
    decoded = quantizer.decode(quantizer.encode(values))
    assert np.flatnonzero(~np.isfinite(decoded)).tolist() == [1500]
    plain = QSGD(4, nonfinite="propagate")
    np.testing.assert_array_equal(decoded, plain.decode(plain.encode(values)))


@pytest.mark.parametrize("size", [0, 1, 3])
def test_few_values(coder, size):
    quantizer = QSGD(4, coder=coder)
    values = gaussian(size)
    plain = QSGD(4)
    np.testing.assert_array_equal(
        quantizer.decode(quantizer.encode(values)), plain.decode(plain.encode(values))
    )


def test_hostile_codes(coder):
    quantizer = QSGD(2, bucket=64, norm="l2", coder=coder)
    good = quantizer.encode(gaussian(300)).data
    assert coders.is_encoded(good)
    for end in range(good.size):
        with pytest.raises(ValueError, match=r"bytes|ends"):
            quantizer.decode(Code(300, good[:end].copy()))
    with pytest.raises(ValueError, match="bytes"):
        quantizer.decode(Code(300, np.append(good, np.uint8(0))))
    for count in (0, 1, 10**6):  # other numbers of norms
        with pytest.raises(ValueError, match="bytes"):
            quantizer.decode(Code(count, good))
    for bit in range(8 * good.size):
        changed = good.copy()
        changed[bit // 8] ^= 1 << bit % 8
        with suppress(ValueError):
            assert quantizer.decode(Code(300, changed)).size == 300


@given(data=st.binary(max_size=150), count=st.integers(1, 300))
def test_hostile_bytes(coder, data, count):
    with suppress(ValueError):
        assert (
            CODERS[coder].decode_levels(np.frombuffer(data, np.uint8), count).size == count
        )


def test_levels_beyond_the_largest_are_refused(coder):
    quantizer = QSGD(levels=2, bucket=None, norm="l2", coder=coder)
    norms, levels = quantizer.quantize(gaussian(300))
    levels = levels.copy()
    levels[7] = 3
    out = np.zeros(quantizer.nbytes(300), np.uint8)
    used = coders.write(coder, norms, levels, out)
    with pytest.raises(ValueError, match="at most 2"):
        quantizer.decode(Code(300, out[:used]))
