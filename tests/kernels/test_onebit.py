"""One bit a value: bit for bit as defined, on every instruction set."""

import math

import numpy as np
import pytest

from sparcml import kernels
from tests.kernels.reference import bitplane as reference

from .data import once

pytestmark = pytest.mark.usefixtures("isa")
SPECIAL = np.array(
    [0, -0.0, np.nan, np.inf, -np.inf, 1e-45, -1e-44, 3e38, -3.4e38, 0.5], np.float32
)
KINDS = ("normal", "tiny", "huge", "nan", "infinite", "special", "positive", "zero")


def vector(kind, size):
    rng = np.random.default_rng(size)
    values = rng.standard_normal(size).astype(np.float32)
    if kind == "tiny":
        values *= np.float32(1e-42)
    if kind == "huge":
        values = np.clip(values, -1, 1) * np.float32(3.4e38)
    if kind == "nan":
        values[rng.random(size) < 0.05] = -np.nan
    if kind == "infinite":
        values[rng.random(size) < 0.05] = rng.choice([np.inf, -np.inf])
    if kind == "special":
        values = rng.choice(SPECIAL, size)
    if kind == "positive":
        values = np.abs(values)
    if kind == "zero":
        values[:] = 0
    return values


def same_bits(got, want):
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a.view(np.uint8), b.view(np.uint8))


@pytest.mark.parametrize("bucket", [1, 5, 8, 33, 64, 100, 1 << 20])
@pytest.mark.parametrize("kind", KINDS)
def test_the_definition(bucket, kind):
    for size in (0, 1, 7, 8, 9, 31, 32, 33, 64, 1000, 5001):
        as_defined(vector(kind, size), bucket)


def as_defined(values, bucket):
    size = values.size
    for mean in (False, True):
        levels, bits = kernels.to_onebit(values, bucket, mean)
        same_bits((levels, bits), once(reference.to_onebit, values, bucket, mean))
        back = kernels.from_bitplane(levels, bits, size, bucket)
        same_bits([back], [once(reference.from_bitplane, levels, bits, size, bucket)])
    same_bits(kernels.to_sign(values, bucket), once(reference.to_sign, values, bucket))


def test_arrays_at_any_address():
    whole = vector("normal", 300)
    for start in range(9):
        values = whole[start : start + 257]
        same_bits(kernels.to_onebit(values, 100), reference.to_onebit(values.copy(), 100))


def test_nothing_is_written_beyond_the_end():
    for size in (1, 8, 31, 100, 257):
        bits, values = np.full(size, 170, np.uint8), np.full(size + 40, 7, np.float32)
        nbytes = -(-size // 8)
        levels, _ = kernels.to_onebit(vector("normal", size), 30, bits=bits[:nbytes])
        kernels.from_bitplane(levels, bits[:nbytes], size, 30, values[:size])
        assert (bits[nbytes:] == 170).all()
        assert (values[size:] == 7).all()


@pytest.mark.slow
@pytest.mark.parametrize("sign", [1, -1])
def test_a_single_bucket_of_16_million_stays_accurate(sign):
    """Float32 sums of so many values of one sign lose all digits."""
    values = sign * (1 + np.random.default_rng(1).random(1 << 24, np.float32))
    exact = math.fsum(values[:: 1 << 4].tolist())  # a sample is enough to see a bad sum
    levels, _ = kernels.to_onebit(values, values.size)
    scales, _ = kernels.to_sign(values, values.size)
    mean = np.mean(values, dtype=np.float64)
    assert mean == pytest.approx(exact / (1 << 20), rel=1e-3)
    assert levels[(sign + 1) // 2] == np.float32(mean)
    assert scales[0] == np.float32(abs(mean))


def test_bad_arguments():
    ones = np.ones(9, np.float32)
    with pytest.raises(ValueError, match="bucket must be at least 1"):
        kernels._core.to_sign(ones, 0, np.empty(1, np.float32), np.empty(2, np.uint8))
    for levels, bits in ((2, 2), (4, 1), (4, 3)):
        with pytest.raises(ValueError, match="two values or scales one"):
            kernels._core.to_onebit(
                ones, 5, False, np.empty(levels, np.float32), np.empty(bits, np.uint8)
            )
        with pytest.raises(ValueError, match="two values or scales one"):
            kernels.from_bitplane(np.ones(levels, "f4"), np.zeros(bits, "u1"), 9, 5)
