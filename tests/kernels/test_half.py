"""Short floats equal NumPy's and torch's, bit for bit."""

import numpy as np
import pytest
from numpy.typing import NDArray

from sparcml.kernels import coding
from tests.kernels.reference import coding as reference

pytestmark = pytest.mark.usefixtures("isa")


def hard_floats() -> NDArray[np.float32]:
    """Around every float16 and bfloat16: itself, the ties, and a bit to each side."""
    rng = np.random.default_rng(2)
    halves = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
    with np.errstate(invalid="ignore"):
        ties = (halves[:-1].astype(np.float64) + halves[1:]) / 2
    exact = [halves.view(np.uint32), ties.astype(np.float32).view(np.uint32)]
    exact.append(np.arange(0, 2**32, 0x8000, dtype=np.uint32))
    exact.append(rng.integers(0, 2**32, 70_003, dtype=np.uint32))
    bits = np.concatenate(exact)
    return np.concatenate([bits, bits - 1, bits + 1]).view(np.float32)


@pytest.mark.parametrize("bfloat", [False, True])
def test_halves(bfloat):
    values = hard_floats()
    np.testing.assert_array_equal(
        coding.to_half(values, bfloat), reference.to_half(values, bfloat)
    )
    bits = np.arange(65536, dtype=np.uint16)
    back = coding.from_half(bits, bfloat)
    expected = reference.from_half(bits, bfloat)
    np.testing.assert_array_equal(back.view(np.uint32), expected.view(np.uint32))
    again = coding.to_half(back, bfloat)
    np.testing.assert_array_equal(again[~np.isnan(back)], bits[~np.isnan(back)])
    for n in range(20):
        np.testing.assert_array_equal(
            coding.to_half(values[7 : 7 + n], bfloat),
            coding.to_half(values, bfloat)[7 : 7 + n],
        )


def test_bfloat_equals_torch():
    torch = pytest.importorskip("torch")
    values = hard_floats()
    values = values[~np.isnan(values)]
    theirs = torch.from_numpy(values).to(torch.bfloat16).view(torch.int16).numpy()
    np.testing.assert_array_equal(coding.to_half(values, True), theirs.view(np.uint16))
