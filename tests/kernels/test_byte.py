"""Signed bytes: bit for bit as defined, on every instruction set."""

import numpy as np
import pytest

from sparcml import kernels
from sparcml.kernels.reference import coding

pytestmark = pytest.mark.usefixtures("isa")
SPECIAL = np.array(
    [0, -0.0, np.nan, 1e-45, -1e-44, 1e-38, 3e38, -3.4e38, 0.5, -1.5], np.float32
)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 31, 64, 1000])
@pytest.mark.parametrize("bucket", [1, 5, 64, 1024])
@pytest.mark.parametrize("kind", ["normal", "tiny", "special", "infinite", "zero"])
def test_the_definition(size, bucket, kind):
    rng = np.random.default_rng(size + bucket)
    values = rng.standard_normal(size).astype(np.float32)
    if kind == "tiny":
        values *= np.float32(1e-42)
    if kind == "special":
        values = rng.choice(SPECIAL, size)
    if kind == "infinite" and size:
        values[rng.integers(0, size, 2)] = np.inf, -np.inf
    if kind == "zero":
        values[:] = 0
    scales, codes = kernels.to_bytes(values, bucket)
    want_scales, want_codes = coding.to_bytes(values, bucket)
    np.testing.assert_array_equal(scales.view(np.uint32), want_scales.view(np.uint32))
    np.testing.assert_array_equal(codes, want_codes)
    got, want = (
        kernels.from_bytes(scales, codes, bucket),
        coding.from_bytes(scales, codes, bucket),
    )
    np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))


def test_the_error_is_at_most_half_a_step():
    values = np.random.default_rng(0).standard_normal(5000).astype(np.float32)
    scales, codes = kernels.to_bytes(values, 1024)
    error = np.abs(kernels.from_bytes(scales, codes, 1024) - values)
    assert (error <= np.repeat(scales, 1024)[:5000] * 0.501).all()


def test_bad_arguments():
    with pytest.raises(ValueError, match="bucket must be at least 1"):
        kernels._core.to_bytes(
            np.ones(3, np.float32), 0, np.empty(1, np.float32), np.empty(3, np.int8)
        )
    with pytest.raises(ValueError, match="one scale a bucket"):
        kernels._core.to_bytes(
            np.ones(3, np.float32), 2, np.empty(1, np.float32), np.empty(3, np.int8)
        )
