"""Integer: exact multiples in few bits."""

import numpy as np
import pytest

from sparcml import Integer


@pytest.mark.parametrize("ranks", [1, 2, 3, 8, 100, 1000])
@pytest.mark.parametrize("step", [1.0, 0.1, 3e-5])
def test_nothing_is_lost(ranks, step):
    times = np.random.default_rng(ranks).integers(-ranks, ranks + 1, (50, 31))
    values = times.astype(np.float32) * np.float32(step)
    quantizer = Integer(step, ranks)
    code = quantizer.encode(values)
    assert code.nbytes == -(-values.size * int(np.ceil(np.log2(2 * ranks + 1))) // 8)
    np.testing.assert_array_equal(quantizer.decode(code), values)


def test_what_is_off_the_grid_is_an_error():
    for bad in (0.5, 3.0, 1.01):
        with pytest.raises(ValueError, match="times an integer from -2 to 2"):
            Integer(1.0, 2).encode(np.array([1, bad], np.float32))


def test_what_is_not_finite_comes_back_as_nan():
    integer = Integer(0.5, 2, nonfinite="propagate")
    decoded = integer.decode(integer.encode([1, np.nan, -np.inf, 0]))
    np.testing.assert_array_equal(decoded, np.array([1, np.nan, np.nan, 0], np.float32))


@pytest.mark.parametrize(
    ("step", "max_", "why"),
    [(0.0, 1, "step"), (np.nan, 1, "step"), (1.0, 0, "max"), (1.0, 32768, "max")],
)
def test_bad_settings(step, max_, why):
    with pytest.raises(ValueError, match=why):
        Integer(step, max_)
