"""NUQSGD: what the paper says of it."""

import math

import numpy as np
import pytest

from sparcml import NUQSGD, kernels

from .vectors import VECTORS, draws

TRIALS = 1000


@pytest.mark.parametrize("bits", range(2, 9))
def test_levels(bits):
    coder = NUQSGD(bits, bucket=None)
    assert 1 + math.ceil(math.log2(coder.s + 2)) <= bits
    vector = VECTORS["normal"]
    length = np.float32(np.sqrt((vector.astype(np.float64) ** 2).sum()))
    shares = np.abs(coder.decode(coder.encode(vector, 1))) / length
    found = shares[shares > 0]
    np.testing.assert_array_equal(found, 2.0 ** np.rint(np.log2(found)))
    assert found.min() >= 2.0**-coder.s


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
@pytest.mark.parametrize("name", VECTORS)
def test_either_neighbour_with_the_right_chance(bits, name):
    coder, v = NUQSGD(bits, bucket=None), VECTORS[name].astype(np.float64)
    rows = draws(coder, VECTORS[name], TRIALS)
    length = np.sqrt(v @ v)
    table = np.append(0, 2.0 ** np.arange(-coder.s, 1))
    r = np.minimum(np.abs(v) / length, 1)
    j = np.minimum(np.searchsorted(table, r, "right") - 1, table.size - 2)
    low, high = table[j], table[j + 1]
    assert (np.abs(rows) >= low * length * (1 - 1e-6)).all()
    assert (np.abs(rows) <= high * length * (1 + 1e-6)).all()
    p = (r - low) / (high - low)
    off = np.abs(np.abs(rows).mean(0) / length - r) / (high - low)
    assert (off < 5 * np.sqrt(p * (1 - p) / TRIALS) + 25 / TRIALS * (p < 0.03) + 1e-4).all()


def test_the_grid_stays_where_it_is():
    coder = NUQSGD(4, bucket=None)
    table = np.append(0, 2.0 ** np.arange(-coder.s, 1))
    rest = math.sqrt(1 - (table[:-1] ** 2).sum())
    for norm in (1.0, 0.7, 123.456):
        vector = norm * np.array([*table[:-1], rest])
        back = coder.decode(coder.encode(vector, 3))
        np.testing.assert_allclose(back[:-1], vector[:-1], rtol=3e-7)


def test_even_levels_give_qsgd():
    """Any table works: with even levels, as often up and down as QSGD."""
    vector, table = VECTORS["normal"], (np.arange(8) / 7).astype(np.float32)
    sums = np.zeros((2, vector.size))
    for seed in range(TRIALS):
        code = kernels.to_table(vector, 300, table, 4, kernels.L2_NORM, seed=seed)
        sums[0] += kernels.from_table(code, 300, 300, table, 4)
        code = kernels.to_grid(vector, 300, 7, 4, kernels.L2_NORM, seed=TRIALS + seed)
        sums[1] += kernels.from_grid(code, 300, 300, 7, 4)
    step = np.sqrt((vector.astype(np.float64) ** 2).sum()) / 7
    x = np.abs(vector) / step
    sigma = np.sqrt((x % 1) * (1 - x % 1) * 2 / TRIALS)
    assert (np.abs(sums[0] - sums[1]) / TRIALS / step < 5 * sigma + 0.01).all()


def test_small_values_are_kept_better_than_by_qsgd():
    """What it is for: heavy tails, where an even grid has no levels for the many."""
    from sparcml import QSGD

    vector = VECTORS["heavy"]
    error = {
        coder: ((draws(coder, vector, 200) - vector) ** 2).mean()
        for coder in (NUQSGD(4, None), QSGD(4, None, "l2"))
    }
    first, second = error.values()
    assert first < second


def test_bytes():
    assert NUQSGD(4, 512).nbytes(1000) == 500 + 8
    assert NUQSGD(3, None).nbytes(9) == 4 + 4


def test_omega():
    assert NUQSGD(2, None).omega(16) == 1 / 8 + 4
    assert NUQSGD(4, 1024).omega(10**9) == 1 / 8 + 2**-14 * 1024


@pytest.mark.parametrize("wrong", [{"bits": 0}, {"bits": 1}, {"bits": 9}, {"bucket": 0}])
def test_bad_arguments(wrong):
    with pytest.raises(ValueError, match="NUQSGD: b"):
        NUQSGD(**wrong)
