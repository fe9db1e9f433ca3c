"""Threshold: fixed, Strom's, and the one that adapts to a share."""

import numpy as np
import pytest

import sparcml
from sparcml.sparsify import threshold as numbers

from .vectors import gradient, norm2


@pytest.mark.parametrize("value", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_that_reach_it_and_the_bound(value, dtype):
    v = gradient(1, 5000, dtype)
    stream = sparcml.Threshold(value).select(v)
    np.testing.assert_array_equal(stream.indices, np.flatnonzero(np.abs(v) >= value))
    assert norm2(v - stream.to_dense()) <= v.size * value**2


def test_the_threshold_itself_reaches_it():
    v = np.array([0.7, -0.7, 0.69, np.nan, np.inf, 0], np.float32)
    assert sparcml.Threshold(0.7).select(v).indices.tolist() == [0, 1, 3, 4]


def test_zeros_reach_no_threshold():
    v = np.array([0, 1e-45, -0.0, 1], np.float32)
    assert sparcml.Threshold(1e-60).select(v).indices.tolist() == [1, 3]


def test_strom_sends_the_threshold_and_keeps_the_difference():
    v = np.array([0.1, -0.6, 0.5, 2.0, -np.inf], np.float32)
    taken = sparcml.Threshold(0.5, strom=True).select_with_residual(np.zeros_like(v), v)
    assert taken.sent.indices.tolist() == [1, 2, 3, 4]
    assert taken.sent.values.tolist() == [-0.5, 0.5, 0.5, -np.inf]
    np.testing.assert_allclose(taken.residual, [0.1, -0.1, 0, 1.5, 0], atol=1e-7)
    # What is above comes in the next steps, a threshold at a time.
    rest = taken.residual
    for due in (1.5, 1.0, 0.5):
        assert rest[3] == due
        rest = (
            sparcml.Threshold(0.5, strom=True)
            .select_with_residual(rest, np.zeros_like(v))
            .residual
        )


@pytest.mark.parametrize("ratio", [0.001, 0.01, 0.1, 0.7, 1.0])
@pytest.mark.parametrize("power", [1, 5])
def test_a_share_is_met_within_the_bounds_of_dgc(ratio, power):
    v = gradient(3, 100_000) ** power
    stream = sparcml.Threshold(ratio=ratio).select(v)
    target = round(ratio * v.size)
    assert numbers.FEW * target <= stream.nnz <= numbers.MANY * target
    least = np.abs(stream.values).min()
    assert stream.nnz == np.count_nonzero(np.abs(v) >= least)


def test_a_share_on_vectors_that_mislead_the_sample():
    size = 100_000
    high, low = gradient(1, size), np.zeros(size, np.float32)
    high[:: numbers.SAMPLE] = 50  # lowered ten times, and then given up
    low[::7] = 1  # the sample meets few of them, and then too many reach the threshold
    flat = np.ones(size, np.float32)
    for v in (high, low, flat):
        stream = sparcml.Threshold(ratio=0.01).select(v)
        assert 0 < stream.nnz <= numbers.MANY * 0.01 * size
    assert sparcml.Threshold(ratio=0.01).select(flat).nnz == 1000
    few = np.zeros(size, np.float32)
    few[5:50] = 1
    assert sparcml.Threshold(ratio=0.01).select(few).indices.tolist() == list(range(5, 50))
    assert sparcml.Threshold(ratio=0.01).select(np.zeros(size)).nnz == 0


def test_the_threshold_is_reused_corrected_and_sampled_again():
    sparsifier, size = sparcml.Threshold(ratio=0.01), 50_000
    state, zero = sparsifier.initial_state(), np.zeros(size, np.float32)
    assert state.tolist() == [0, 0]
    rng = np.random.default_rng(1)
    seen = []
    for _ in range(2 * numbers.REUSED):
        v = rng.standard_normal(size).astype(np.float32)
        taken = sparsifier.select_with_residual(zero, v, state=state)
        assert 0.5 * 500 <= taken.sent.nnz <= 2 * 500
        seen.append(state.tolist())
    calls = [c for _, c in seen]
    assert calls == [*range(1, numbers.REUSED + 1)] * 2
    used = [t for t, _ in seen]
    assert len(set(used[: numbers.REUSED])) < numbers.REUSED / 2  # mostly left alone


@pytest.mark.parametrize(
    ("count", "step"),
    [(130, numbers.SCALE), (120, 1.0), (70, 1.0), (60, 1 / numbers.SCALE)],
)
def test_it_follows_slowly(count, step):
    """By 1.2 % a call, once more than 5/4 or less than 2/3 of the target come."""
    v = gradient(1, 100_000, np.float64)
    sparsifier = sparcml.Threshold(ratio=0.001)
    before = np.sort(np.abs(v))[-count]
    state = np.array([before, 1])
    taken = sparsifier.select_with_residual(np.zeros_like(v), v, state=state)
    assert taken.sent.nnz == count
    assert state.tolist() == [pytest.approx(before * step), 2]


@pytest.mark.parametrize("factor", [10.0, 0.1])
def test_it_starts_afresh_when_the_data_run_away(factor):
    v = gradient(1, 100_000)
    zero, sparsifier = np.zeros_like(v), sparcml.Threshold(ratio=0.01)
    state = sparsifier.initial_state()
    sparsifier.select_with_residual(zero, v, state=state)
    w = v * np.float32(factor)
    assert (
        sparsifier.select_with_residual(zero, w, state=state).sent.nnz <= 1000
    )  # never a flood
    assert state[0] == 0
    assert 800 <= sparsifier.select_with_residual(zero, w, state=state).sent.nnz <= 1300


def test_arguments_that_make_no_sense():
    for value in (0, -1, np.nan, np.inf):
        with pytest.raises(ValueError, match="value must be above 0"):
            sparcml.Threshold(value)
    with pytest.raises(ValueError, match="exactly one of value and ratio"):
        sparcml.Threshold()
    with pytest.raises(ValueError, match="exactly one of value and ratio"):
        sparcml.Threshold(1.0, 0.1)
    with pytest.raises(ValueError, match="ratio must be above 0"):
        sparcml.Threshold(ratio=0)
    with pytest.raises(ValueError, match="strom"):
        sparcml.Threshold(ratio=0.1, strom=True)
