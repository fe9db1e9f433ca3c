"""Residuals when the learning rate changes, and where momentum acts.

Sums are exact enough in float64 to compare with the dense method at 1e-12.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import sparcml
from sparcml import QSGD, Compressed, Dense, OneBit, PowerSGD, TopK
from sparcml.aggregate import reshard

SIZE, STEPS = 50, 200
FEEDBACK = {
    "topk": Compressed(TopK(k=2)),
    "topk qsgd": Compressed(TopK(k=5), QSGD(8, bucket=16)),
    "onebit": Compressed(quantize=OneBit()),
    "warm-up": Compressed(TopK(0.04), warm_up=0.2, steps=STEPS),
}


def cosine(step):
    return 0.5 * (1 + math.cos(math.pi * step / STEPS)) + 1e-3


def gradient(rank, step, size=SIZE):
    return np.random.default_rng((rank, step)).standard_normal(size)


def mean_gradient(ranks, step):
    return np.mean([gradient(rank, step) for rank in range(ranks)], axis=0)


def mean_residual(comm, state):
    return comm.allreduce(np.asarray(state["residual"], np.float64), op="mean")


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("name", FEEDBACK)
def test_weights_and_pending_updates_are_those_of_dense_sgd(name, ranks):
    def work(comm):
        method, w, dense = FEEDBACK[name], np.zeros(SIZE), np.zeros(SIZE)
        state = method.init(SIZE)
        state["residual"] = state["residual"].astype(np.float64)
        for step in range(STEPS):
            lr = cosine(step)
            mean, state = method.aggregate(comm, gradient(comm.rank, step), state, lr=lr)
            w -= lr * mean
            dense -= lr * mean_gradient(comm.size, step)
            pending = lr * mean_residual(comm, state)
            np.testing.assert_allclose(w - pending, dense, rtol=0, atol=1e-12)

    sparcml.launch(work, ranks)


def test_without_the_learning_rate_they_are_not():
    method = Compressed(TopK(k=2))
    w, dense, state = np.zeros(SIZE), np.zeros(SIZE), method.init(SIZE)
    with sparcml.world() as comm:
        for step in range(STEPS):
            mean, state = method.aggregate(comm, gradient(0, step), state)
            w -= cosine(step) * mean
            dense -= cosine(step) * gradient(0, step)
    assert np.abs(w - cosine(STEPS - 1) * state["residual"] - dense).max() > 0.01


def test_a_learning_rate_of_zero_leaves_the_residual_as_it_is():
    method = Compressed(TopK(k=2))
    state = method.init(SIZE)
    with sparcml.world() as comm:
        for lr in (0.0, 0.5, 0.0, 0.25):
            before, g = state, gradient(0, 1)
            _, state = method.aggregate(comm, g, state, lr=lr)
            factor = 2 if lr == 0.25 else 1
            corrected = factor * before["residual"] + g
            left = np.sort(np.abs(corrected))[:-2]
            np.testing.assert_allclose(np.sort(np.abs(state["residual"]))[2:], left)
        assert float(state["learning_rate"]) == 0.25


@pytest.mark.parametrize("lr", [-0.1, math.nan, math.inf])
def test_learning_rates_must_be_numbers(lr):
    with (
        sparcml.world() as comm,
        pytest.raises(ValueError, match="lr must be a nonnegative"),
    ):
        Dense().aggregate(comm, np.ones(3), Dense().init(3), lr=lr)


def test_each_parameter_has_its_own_learning_rate():
    method, shapes = Compressed(TopK(k=1), dense_below=1), {"a": (4, 4), "b": (4, 4)}
    g = {name: np.arange(16.0).reshape(4, 4) for name in shapes}
    with sparcml.world() as comm:
        _, state = method.aggregate(comm, g, method.init(shapes), lr={"a": 1.0, "b": 1.0})
        _, state = method.aggregate(comm, g, state, lr={"a": 0.5, "b": 1.0})
    for name, factor in (("a", 3.0), ("b", 2.0)):  # 15, then 14 was sent
        expected = factor * np.arange(16.0)
        expected[14:] = 0, 15
        np.testing.assert_array_equal(state[f"residual/{name}"], expected)


@pytest.mark.parametrize("after", [Dense(), PowerSGD(rank=1), Compressed(quantize=QSGD(8))])
def test_the_next_method_takes_over_the_residual_with_its_learning_rate(after):
    def work(comm):
        shape = (10, 5)
        before, w, dense = Compressed(TopK(k=2)), np.zeros(shape), np.zeros(shape)
        state = before.init(shape)
        state["residual"] = state["residual"].astype(np.float64)
        for step in range(8):
            method = before if step < 4 else after
            if step == 4:
                state = method.init(shape, state)
            lr = cosine(20 * step)
            g = gradient(comm.rank, step).reshape(shape)
            mean, state = method.aggregate(comm, g, state, lr=lr)
            w -= lr * mean
            dense -= lr * mean_gradient(comm.size, step).reshape(shape)
        residual = state.get("residual", np.zeros(50)).astype(np.float64)
        pending = lr * comm.allreduce(residual, op="mean").reshape(shape)
        np.testing.assert_allclose(w - pending, dense, rtol=0, atol=1e-6)

    sparcml.launch(work, 2)


def test_the_learning_rate_survives_a_change_of_the_world_size():
    def work(comm):
        method = Compressed(TopK(k=2))
        _, state = method.aggregate(comm, gradient(comm.rank, 0), method.init(SIZE), lr=0.3)
        return state

    for state in reshard(sparcml.launch(work, 3), 2):
        assert float(state["learning_rate"]) == 0.3


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("ranks", [1, 3])
def test_momentum_before_the_selection_is_dense_momentum(ranks, nesterov):
    def work(comm):
        method = Compressed(TopK(k=2), momentum=0.9, nesterov=nesterov)
        state, u = method.init(SIZE), np.zeros(SIZE)
        state = {k: v.astype(np.float64) if k != "step" else v for k, v in state.items()}
        w, dense = np.zeros(SIZE), np.zeros(SIZE)
        for step in range(STEPS):
            lr, g = cosine(step), mean_gradient(comm.size, step)
            mean, state = method.aggregate(comm, gradient(comm.rank, step), state, lr=lr)
            w -= lr * mean
            u = 0.9 * u + g
            dense -= lr * (g + 0.9 * u if nesterov else u)
        pending = lr * mean_residual(comm, state)
        np.testing.assert_allclose(w - pending, dense, rtol=0, atol=1e-12)

    sparcml.launch(work, ranks)


def test_momentum_after_the_sum_delays_and_loses_nothing():
    # w - w_dense = lr r with r = m r + mean residual, at a constant learning rate.
    def work(comm):
        method, lr, m = Compressed(TopK(k=2)), 0.1, 0.9
        state = method.init(SIZE)
        state["residual"] = state["residual"].astype(np.float64)
        w, v, dense, u, r = (np.zeros(SIZE) for _ in range(5))
        for step in range(STEPS):
            mean, state = method.aggregate(comm, gradient(comm.rank, step), state, lr=lr)
            v = m * v + mean
            w -= lr * v
            u = m * u + mean_gradient(comm.size, step)
            dense -= lr * u
            r = m * r + mean_residual(comm, state)
            np.testing.assert_allclose(w - dense, lr * r, rtol=0, atol=1e-12)

    sparcml.launch(work, 3)
