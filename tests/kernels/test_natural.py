"""Powers of two, and moments: bit for bit as defined, on every instruction set."""

import numpy as np
import pytest

from sparcml import kernels
from tests.kernels.reference import quantization as reference

from .data import KINDS, same, values_of

pytestmark = pytest.mark.usefixtures("isa")
SIZES = (0, 1, 7, 8, 9, 31, 32, 33, 1000, 300_003)


@pytest.mark.parametrize("kind", [*KINDS, "bits"])
def test_the_definition(kind):
    for size in SIZES:
        values = values_of(kind, size, size)
        if kind == "bits":
            rng = np.random.default_rng(size)
            values = rng.integers(0, 2**32, size, np.uint32).view(np.float32)
        code = kernels.to_natural(values, seed=size)
        same(code, reference.to_natural(values, size))
        same(kernels.from_natural(code, size), reference.from_natural(code, size))


def test_any_bytes_decode_to_the_same():
    code = np.random.default_rng(0).integers(0, 256, 900, np.uint8)
    same(kernels.from_natural(code, 800), reference.from_natural(code, 800))


def test_the_wrong_length():
    with pytest.raises(ValueError, match="9 bits per value"):
        kernels.to_natural(np.ones(9, np.float32), out=np.empty(10, np.uint8))
    with pytest.raises(ValueError, match="9 bits per value"):
        kernels.from_natural(np.empty(10, np.uint8), 9)


@pytest.mark.parametrize("kind", KINDS)
def test_moments(kind):
    for size in SIZES:
        values = values_of(kind, size, size)
        np.testing.assert_array_equal(kernels.moments(values), reference.moments(values))
