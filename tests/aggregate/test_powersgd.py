"""PowerSGD: linear, a projection, and ever closer to the best factors."""

from __future__ import annotations

import numpy as np
import pytest

import sparcml
from sparcml import PowerSGD

SHAPE = (30, 40)


def matrix(*key, shape=SHAPE):
    return np.random.default_rng(key).standard_normal(shape)


@pytest.mark.parametrize("ranks", [2, 3, 5, 8])
def test_many_ranks_are_as_one_with_the_mean(ranks):
    def work(comm):
        method = PowerSGD(rank=3)
        state, alone = method.init(SHAPE), method.init(SHAPE)
        single = sparcml.world()
        for step in range(4):
            mean, state = method.aggregate(comm, matrix(comm.rank, step), state)
            g = np.mean([matrix(r, step) for r in range(comm.size)], axis=0)
            want, alone = method.aggregate(single, g, alone)
            np.testing.assert_allclose(mean, want, atol=1e-9)
            # the mean of the residuals is the mean of what was owed less the result
            rest = comm.allreduce(state["residual"], op="mean")
            np.testing.assert_allclose(rest, alone["residual"], atol=1e-9)

    sparcml.launch(work, ranks)


def test_the_result_is_a_projection():
    comm = sparcml.world()
    method = PowerSGD(rank=4)
    M = matrix(0)
    got, _ = method.aggregate(comm, M, method.init(SHAPE))
    left, *_ = np.linalg.svd(got)
    P = left[:, :4]
    np.testing.assert_allclose(P @ P.T @ M, got, atol=1e-9)
    lost = np.sum((M - got) ** 2)
    assert lost == pytest.approx(np.sum(M**2) - np.sum((P.T @ M) ** 2))
    assert lost <= np.sum(M**2)


@pytest.mark.parametrize("rank", [1, 2, 5])
def test_a_mean_of_low_rank_is_exact_after_one_step(rank):
    def work(comm):
        left, right = matrix(0, shape=(30, rank)), matrix(1, shape=(rank, 40))
        M = left @ np.diag(np.full(rank, 1.0 + comm.rank)) @ right
        method = PowerSGD(rank=5)
        mean, _ = method.aggregate(comm, M, method.init(SHAPE))
        np.testing.assert_allclose(mean, left @ right * (comm.size + 1) / 2, atol=1e-8)

    sparcml.launch(work, 4)


def test_a_warm_start_finds_the_best_factors():
    comm = sparcml.world()
    left, _, right = np.linalg.svd(matrix(3), full_matrices=False)
    sizes = np.array([8, 6, 2, *[1.0] * 27])
    M = left * sizes @ right
    method = PowerSGD(rank=2, error_feedback=False)
    state, errors = method.init(SHAPE), []
    best = left[:, :2] * sizes[:2] @ right[:2]
    for _ in range(12):
        got, state = method.aggregate(comm, M, state)
        errors.append(np.linalg.norm(got - best))
    rates = np.array(errors[1:8]) / np.array(errors[:7])
    assert errors[-1] < 1e-4
    assert rates[2:].max() < 1.2 * (2 / 6) ** 2  # (s_{r+1} / s_r)^2 a step
    cold = PowerSGD(rank=2, error_feedback=False, warm_start=False)
    again, _ = cold.aggregate(comm, M, cold.init(SHAPE))
    assert np.linalg.norm(again - best) > 10 * errors[-1]


def test_convolutions_are_matrices_and_what_does_not_pay_is_dense():
    shapes = {"bias": (64,), "conv": (32, 16, 3, 3), "tiny": (4, 4)}
    method = PowerSGD(rank=4)
    state = method.init(shapes)
    assert set(state) == {"step", "residual/conv", "factor/conv"}
    assert state["factor/conv"].shape == (144, 4)

    def work(comm):
        g = {n: matrix(comm.rank, shape=s).astype("f4") for n, s in shapes.items()}
        mean, _ = method.aggregate(comm, g, state)
        for n in ("bias", "tiny"):
            exact = comm.allreduce(g[n], op="mean")
            np.testing.assert_allclose(mean[n], exact, atol=1e-6)
        assert np.linalg.matrix_rank(mean["conv"].reshape(32, -1)) == 4

    sparcml.launch(work, 2)


def test_the_factors_are_what_travels():
    def work(comm):
        method = PowerSGD(rank=2)
        state = method.init((300, 200))
        _, state = method.aggregate(
            comm, matrix(comm.rank, shape=(300, 200)).astype("f4"), state
        )
        comm.stats.reset()
        method.aggregate(comm, matrix(comm.rank, shape=(300, 200)).astype("f4"), state)
        return comm.stats.bytes

    for nbytes in sparcml.launch(work, 2):
        assert nbytes <= 2 * 500 * 4 * 1.1 + 1000  # r (n + m) values, each once


@pytest.mark.parametrize("rank", [1, 2])
def test_a_zero_gradient_is_no_dead_end(rank):
    comm, method = sparcml.world(), PowerSGD(rank=rank)
    _, state = method.aggregate(comm, np.zeros(SHAPE), method.init(SHAPE))
    M = matrix(0)
    M[:rank] = 0  # rows that the first unit vectors would look at
    mean, _ = method.aggregate(comm, M, state)
    assert np.linalg.norm(mean) > 0.1 * np.linalg.norm(M) / np.sqrt(30)


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="must be >= 1"):
        PowerSGD(rank=0)
    wide, narrow = PowerSGD(rank=3), PowerSGD(rank=2)
    with pytest.raises(ValueError, match="create the state with init"):
        wide.aggregate(sparcml.world(), matrix(0), narrow.init(SHAPE))
