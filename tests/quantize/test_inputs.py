"""What can be coded, and what is refused."""

import numpy as np
import pytest

from sparcml import NUQSGD, QSGD, Half, Natural, OneBit, Sign, TernGrad

ALL = [QSGD(4), NUQSGD(4), TernGrad(), Natural(), Half(), OneBit(), Sign()]
coders = pytest.mark.parametrize("coder", ALL, ids=str)
MATRIX = np.random.default_rng(0).standard_normal((20, 15)).astype(np.float32)


def same(coder, given, plain):
    one, two = coder.encode(given, 1), coder.encode(plain, 1)
    assert bytes(one) == bytes(two)
    assert one.shape == two.shape == plain.shape


@coders
def test_tensors(coder):
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(MATRIX)
    same(coder, x, MATRIX)
    same(coder, x.clone().requires_grad_(), MATRIX)
    same(coder, x.T, MATRIX.T)
    same(coder, x.double(), MATRIX)
    for short in (torch.float16, torch.bfloat16):
        same(coder, x.to(short).T, x.to(short).float().numpy().T)


@coders
def test_tensors_that_cannot_be_coded(coder):
    torch = pytest.importorskip("torch")
    for bad in (torch.ones(3, dtype=torch.int64), torch.ones(3).to_sparse()):
        with pytest.raises(TypeError, match="tensors must be dense and of float32"):
            coder.encode(bad)


@coders
@pytest.mark.parametrize(
    ("bad", "dtype"),
    [
        (["a", "b"], "<U1"),
        ("abc", "<U3"),
        (None, "object"),
        ([1.0, None], "object"),
        ([1j, 2], "complex128"),
        (np.array(["2026-01-01"], "M8[D]"), "datetime64"),
    ],
)
def test_values_that_are_no_real_numbers(coder, bad, dtype):
    with pytest.raises(TypeError, match=f"values must be real numbers, got {dtype}"):
        coder.encode(bad)


@coders
def test_places_that_cannot_hold_a_code(coder):
    due = coder.nbytes(300)
    frozen = np.empty(due, np.uint8)
    frozen.flags.writeable = False
    for bad, why in (
        (np.empty(due, np.int8), "must be an array of uint8, got int8"),
        (bytearray(due), "must be an array of uint8, got bytearray"),
        (np.empty(2 * due, np.uint8)[::2], "contiguous and writable"),
        (frozen, "contiguous and writable"),
        (np.empty(due + 1, np.uint8), "for 300 values"),
        (np.empty((1, due), np.uint8), "2 dimensions"),
    ):
        with pytest.raises(ValueError, match=why):
            coder.encode(MATRIX.ravel(), 0, bad)


@coders
def test_places_that_cannot_hold_values(coder):
    code = coder.encode(MATRIX.ravel())
    for bad, why in (
        (np.empty(300), "must be an array of float32, got float64"),
        ([0.0] * 300, "must be an array of float32, got list"),
        (np.empty(600, np.float32)[::2], "contiguous and writable"),
    ):
        with pytest.raises(ValueError, match=why):
            coder.decode(code, bad)


@coders
@pytest.mark.filterwarnings("error")
def test_nothing_is_warned_of(coder):
    """Numbers beyond float32, and NaN of every kind."""
    signalling = np.array([0x7F800001, 0x7FC00000, 0xFF812345], np.uint32).view(np.float32)
    wide = np.array([0x7FF0000000000001, 0x7FF8000000000000], np.uint64).view(np.float64)
    large = np.array([3e38, -3e38, 3e38, 0], np.float32)
    for values in (signalling, wide, [1e300, -1e300], large, large[:1], large[:2]):
        coder.decode(coder.propagating().encode(values))
