"""Values on any levels: bit for bit as defined, on every instruction set."""

import numpy as np
import pytest

from sparcml import kernels
from tests.kernels.reference import quantization as reference

from .data import KINDS, once, same, values_of

pytestmark = pytest.mark.usefixtures("isa")


def powers(m):
    return np.append(0, 2.0 ** np.arange(1 - m, 1)).astype(np.float32)


def even(m):
    return (np.arange(m + 1) / m).astype(np.float32)


def check(values, bucket, levels, bits, norm, scale=0.0, seed=7):
    code = kernels.to_table(values, bucket, levels, bits, norm, scale=scale, seed=seed)
    same(code, once(reference.to_table, values, bucket, levels, bits, norm, scale, seed))
    back = kernels.from_table(code, values.size, bucket, levels, bits)
    same(back, once(reference.from_table, code, values.size, bucket, levels, bits))


@pytest.mark.parametrize("bits", range(2, 9))
@pytest.mark.parametrize("bucket", [1, 5, 40, 1024])
@pytest.mark.parametrize("levels", [powers, even])
def test_the_definition(bits, bucket, levels):
    for size in (0, 1, 7, 8, 31, 33, 64, min(1000, 65 + 20 * bucket)):
        for kind in KINDS:
            table = levels(2 ** (bits - 1) - 1)
            check(values_of(kind, size, bits), bucket, table, bits, kernels.L2_NORM)


@pytest.mark.parametrize("m", [1, 2, 3, 7, 8, 9, 16, 17, 100, 127])
def test_any_number_of_levels(m):
    table = np.append(0, np.cumsum(np.random.default_rng(m).random(m) + 0.01))
    table = (table / table[-1]).astype(np.float32)
    for kind in KINDS:
        check(values_of(kind, 3000), 1000, table, 1 + m.bit_length(), kernels.MAX_NORM)
        check(values_of(kind, 3000), 1000, table, 8, kernels.GIVEN_NORM, 0.8)


def test_large_results():
    values = values_of("normal", 300_001)
    for bits in (2, 3, 4, 8):
        check(values, 4096, powers(2 ** (bits - 1) - 1), bits, kernels.L2_NORM)


@pytest.mark.parametrize("bits", range(2, 9))
def test_any_bytes_decode_to_the_same(bits):
    rng = np.random.default_rng(bits)
    for m in {1, 2 ** (bits - 1) - 1}:
        for _ in range(20):
            code = rng.integers(0, 256, kernels.grid_nbytes(200, 64, bits), np.uint8)
            back = kernels.from_table(code, 200, 64, powers(m), bits)
            same(back, reference.from_table(code, 200, 64, powers(m), bits))


def test_bad_arguments():
    values, code = np.ones(8, np.float32), np.empty(8, np.uint8)
    for levels in (
        [0],
        [0, 0.5],
        [0.1, 1],
        [0, 0.5, 0.5, 1],
        [0, np.nan, 1],
        np.arange(9) / 8,
    ):
        with pytest.raises(ValueError, match="levels must"):
            kernels._core.to_table(values, 8, np.array(levels, "f"), 4, 1, 0.0, 0, code)
    with pytest.raises(ValueError, match="4 bytes per bucket"):
        kernels._core.to_table(values, 4, powers(7), 4, 1, 0.0, 0, code)
