"""The mean of codes in two passes: bit for bit as the loops that it consists of."""

import numpy as np
import pytest

from sparcml import kernels

from .data import KINDS, same, values_of

pytestmark = pytest.mark.usefixtures("isa")
SIZES = (0, 1, 7, 8, 255, 256, 2047, 2048, 2049, 5000, 300_001)
FORMATS = [(256, 4), (8, 2), (64, 3), (2048, 8), (1000, 4)]


@pytest.mark.parametrize(("bucket", "bits"), FORMATS)
@pytest.mark.parametrize("norm", [kernels.MAX_NORM, kernels.L2_NORM])
def test_the_code_of_a_corrected_gradient(bucket, bits, norm):
    levels = 2 ** (bits - 1) - 1
    for size in SIZES:
        for kind in KINDS:
            residual, gradient = values_of(kind, size, 1), values_of(kind, size, 2)
            corrected, expected = np.empty_like(gradient), np.empty_like(gradient)
            code = np.empty(kernels.grid_nbytes(size, bucket, bits), np.uint8)
            settings = bucket, levels, bits, norm, 5
            found = kernels.to_grid_corrected(
                residual, gradient, 0.7, corrected, *settings, code
            )
            with np.errstate(all="ignore"):
                kernels.add_residual(residual, gradient, expected, 0.7)
            same(corrected, expected)
            same(code, kernels.to_grid(expected, bucket, levels, bits, norm, seed=5))
            assert found == (
                int(np.count_nonzero(expected.view(np.uint32))),
                bool(np.isfinite(expected).all()),
            )


def test_the_code_of_a_gradient_alone():
    for kind in KINDS:
        gradient = values_of(kind, 5000)
        code = np.empty(kernels.grid_nbytes(5000, 256, 4), np.uint8)
        found = kernels.to_grid_corrected(None, gradient, 1, None, 256, 7, 4, 0, 5, code)
        same(code, kernels.to_grid(gradient, 256, 7, 4, seed=5))
        finite = bool(np.isfinite(gradient).all())
        assert found == (int(np.count_nonzero(gradient.view(np.uint32))), finite)


@pytest.mark.parametrize(("bucket", "bits"), FORMATS)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_the_mean_and_the_residual(bucket, bits, ranks):
    levels = 2 ** (bits - 1) - 1
    for size in SIZES:
        for kind in KINDS:
            vectors = [values_of(kind, size, seed) for seed in range(ranks)]
            codes = [kernels.to_grid(v, bucket, levels, bits, seed=3) for v in vectors]
            decoded = [kernels.from_grid(c, size, bucket, levels, bits) for c in codes]
            total = decoded[0]
            for other in decoded[1:]:
                total = kernels.combine_dense("sum", total, other)
            own = ranks // 2
            with np.errstate(all="ignore"):
                expected = total / np.float32(ranks)
                left = vectors[own] - kernels.from_grid(
                    codes[own], size, bucket, levels, bits
                )
            room = np.empty(size + 8, np.float32)
            for shift in (0, 1, 8):  # not all vectors start at a multiple of 32 bytes
                mean, corrected = room[shift:][:size], vectors[own].copy()
                kernels.mean_from_grid(codes, own, bucket, levels, bits, mean, corrected)
                same(mean, expected)
                same(corrected, left)
            kernels.mean_from_grid(codes, own, bucket, levels, bits, mean)
            same(mean, expected)


def test_arguments_are_checked():
    values = np.zeros(64, np.float32)
    code = np.empty(kernels.grid_nbytes(64, 16, 4), np.uint8)

    def encode(residual, gradient, corrected, bucket=16, code=code):
        kernels.to_grid_corrected(
            residual, gradient, 1, corrected, bucket, 7, 4, kernels.MAX_NORM, 0, code
        )

    with pytest.raises(ValueError, match="multiple of 8"):
        encode(None, values, None, 12, np.empty(56, np.uint8))
    with pytest.raises(ValueError, match="at most 2048"):
        encode(None, values, None, 4096, np.empty(36, np.uint8))
    with pytest.raises(ValueError, match="same size"):
        encode(values[1:], values, values)
    with pytest.raises(ValueError, match="or neither"):
        encode(values, values, None)
    with pytest.raises(ValueError, match="4 bytes per bucket"):
        kernels.mean_from_grid([code, code[1:]], 0, 16, 7, 4, values)
    with pytest.raises(ValueError, match="position of a code"):
        kernels.mean_from_grid([code], 1, 16, 7, 4, values)
    with pytest.raises(ValueError, match="same size"):
        kernels.mean_from_grid([code], 0, 16, 7, 4, values, values[1:])
