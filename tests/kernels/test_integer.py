"""Packed multiples: bit for bit as defined, on every instruction set."""

import numpy as np
import pytest

from sparcml import kernels
from sparcml.kernels import _core
from tests.kernels.reference import bitplane as reference

pytestmark = pytest.mark.usefixtures("isa")


@pytest.mark.parametrize("size", [0, 1, 7, 63, 64, 65, 200, 1000])
@pytest.mark.parametrize("most", [1, 2, 3, 8, 100, 127, 128, 32767])
@pytest.mark.parametrize("step", [1.0, 0.3, 1e-40, 1e34])
def test_the_definition(size, most, step):
    rng = np.random.default_rng(size + most)
    times = rng.integers(-most, most + 1, size).astype(np.float32)
    with np.errstate(over="ignore"):
        values = times * np.float32(step)
    values[rng.random(size) < 0.02] = np.nan
    if step == 1e-40:  # so few bits are left that multiples are exact or gone
        values = np.round(times * 0 + 2) * np.float32(step)
        most = max(most, 2)
    packed = kernels.to_integer(values, step, most)
    want = reference.to_integer(values, step, most)
    assert want is not None
    np.testing.assert_array_equal(packed, want)
    assert packed.size == -(-size * np.ceil(np.log2(2 * most + 1)).astype(int) // 8)
    back = kernels.from_integer(packed, size, step, most)
    again = reference.from_integer(packed, size, step, most)
    assert again is not None
    np.testing.assert_array_equal(back.view(np.uint32), again.view(np.uint32))
    np.testing.assert_array_equal(back, np.where(np.isfinite(values), values, np.nan))


@pytest.mark.parametrize("bad", [0.5, 0.9999, 4.0, -4.0, 1e30])
@pytest.mark.parametrize("at", [0, 63, 64, 99])
def test_other_values_are_refused(bad, at):
    values = np.ones(100, np.float32)
    values[at] = bad
    assert reference.to_integer(values, 1.0, 3) is None
    with pytest.raises(ValueError, match="times an integer from -3 to 3"):
        kernels.to_integer(values, 1.0, 3)


def test_sums_that_rounded_are_still_multiples():
    step = np.float32(0.1)
    for ranks in (3, 8, 100, 127):
        total = np.zeros(1, np.float32)
        for k in range(1, ranks + 1):
            total = total + step
            packed = kernels.to_integer(total, float(step), ranks)
            (back,) = kernels.from_integer(packed, 1, float(step), ranks)
            assert back == np.float32(k) * step


def test_codes_that_are_not_in_use_are_refused():
    for count in (1, 64, 70):
        packed = np.packbits(np.tile([1, 1, 0], count), bitorder="little")  # 3: NaN is 7
        assert reference.from_integer(packed, count, 1.0, 2) is not None
        packed = np.packbits(np.tile([0, 1, 1], count), bitorder="little")
        assert reference.from_integer(packed, count, 1.0, 2) is None
        with pytest.raises(ValueError, match="at most 2"):
            kernels.from_integer(packed, count, 1.0, 2)


@pytest.mark.parametrize(
    ("step", "most", "why"),
    [(0.0, 1, "step"), (np.nan, 1, "step"), (1.0, 0, "max_multiple")],
)
def test_bad_arguments(step, most, why):
    with pytest.raises(ValueError, match=why):
        _core.to_integer(np.ones(4, np.float32), step, most, np.empty(1, np.uint8))
