"""Values on an even grid: bit for bit as defined, on every instruction set."""

import numpy as np
import pytest

from sparcml import kernels
from tests.kernels.reference import quantization as reference

from .data import KINDS, once, same, values_of

pytestmark = pytest.mark.usefixtures("isa")


def check(values, bucket, levels, bits, norm, scale=0.0, seed=7):
    code = kernels.to_grid(values, bucket, levels, bits, norm, scale=scale, seed=seed)
    same(code, once(reference.to_grid, values, bucket, levels, bits, norm, scale, seed))
    back = kernels.from_grid(code, values.size, bucket, levels, bits)
    same(back, once(reference.from_grid, code, values.size, bucket, levels, bits))
    return code, back


@pytest.mark.parametrize("bits", range(2, 9))
@pytest.mark.parametrize("bucket", [1, 5, 16, 40, 1024])
@pytest.mark.parametrize("norm", [kernels.MAX_NORM, kernels.L2_NORM])
def test_the_definition(bits, bucket, norm):
    for size in (0, 1, 7, 8, 31, 33, 64, min(1000, 65 + 20 * bucket)):
        for kind in KINDS:
            check(values_of(kind, size, bits), bucket, 2 ** (bits - 1) - 1, bits, norm)


@pytest.mark.parametrize("levels", [1, 2, 5, 31, 32, 63, 64, 100, 127])
def test_any_number_of_levels(levels):
    for kind in KINDS:
        check(
            values_of(kind, 3000), 1000, levels, 1 + levels.bit_length(), kernels.MAX_NORM
        )
        check(values_of(kind, 3000), 1000, levels, 8, kernels.L2_NORM)


@pytest.mark.parametrize("scale", [0.0, 1e-44, 0.5, 3.0, 1e38])
def test_a_given_norm_clips(scale):
    for kind in KINDS:
        values = values_of(kind, 500)
        _, back = check(values, 500, 1, 2, kernels.GIVEN_NORM, scale)
        finite = np.isfinite(back)
        assert (np.abs(back[finite]) <= np.float32(scale)).all()


@pytest.mark.parametrize("size", [2047, 2048, 2049, 5000, 300_001])
@pytest.mark.parametrize("bits", [2, 3, 4, 8])
def test_long_buckets_and_large_results(size, bits):
    values = values_of("normal", size)
    for bucket in (size, 3000, 4096):
        check(values, bucket, 2 ** (bits - 1) - 1, bits, kernels.MAX_NORM)


def test_nothing_beyond_the_result_is_touched():
    values = values_of("normal", 77)
    for bits in range(2, 9):
        nbytes = kernels.grid_nbytes(77, 16, bits)
        room = np.full(nbytes + 64, 170, np.uint8)
        kernels.to_grid(values, 16, 1, bits, out=room[3 : 3 + nbytes])
        assert (room[:3] == 170).all()
        assert (room[3 + nbytes :] == 170).all()
        back = np.full(77 + 32, 3.5, np.float32)
        kernels.from_grid(room[3 : 3 + nbytes], 77, 16, 1, bits, back[5:82])
        assert (back[:5] == 3.5).all()
        assert (back[82:] == 3.5).all()
        same(back[5:82], kernels.from_grid(room[3 : 3 + nbytes].copy(), 77, 16, 1, bits))


@pytest.mark.parametrize("bits", range(2, 9))
def test_any_bytes_decode_to_the_same(bits):
    """Nobody checks the norms that arrive: whatever they are, no crash, and one result."""
    rng = np.random.default_rng(bits)
    for bucket in (3, 8, 64):
        for _ in range(20):
            code = rng.integers(0, 256, kernels.grid_nbytes(200, bucket, bits), np.uint8)
            levels = 2 ** (bits - 1) - 1
            back = kernels.from_grid(code, 200, bucket, levels, bits)
            same(back, reference.from_grid(code, 200, bucket, levels, bits))


def test_bad_arguments():
    values, code = np.ones(8, np.float32), np.empty(8, np.uint8)
    for bucket, levels, bits, norm, why in (
        (0, 1, 4, 0, "bucket"),
        (8, 1, 1, 0, "bits"),
        (8, 1, 9, 0, "bits"),
        (8, 0, 4, 0, "levels"),
        (8, 8, 4, 0, "levels"),
        (8, 7, 4, 3, "norm"),
        (4, 7, 4, 0, "4 bytes per bucket"),
    ):
        with pytest.raises(ValueError, match=why):
            kernels._core.to_grid(values, bucket, levels, bits, norm, 0.0, 0, code)
    with pytest.raises(ValueError, match="4 bytes per bucket"):
        kernels._core.from_grid(code[:7], 8, 7, 4, values)
