"""Momentum before the selection across checkpoints, world sizes and methods.

The weights less all that is pending stay those of dense momentum, to rounding in float64.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import sparcml
from sparcml import DGC, QSGD, Adaptive, Compressed, Threshold, TopK
from sparcml.aggregate import reshard
from sparcml.aggregate.schedule import Schedule

SIZE, HALF, M = 60, 12, 0.9
FIRST = Compressed(TopK(0.05), momentum=M, warm_up=16)
SECOND = {
    "the same": FIRST,
    "quantized": Compressed(TopK(k=3), QSGD(8, bucket=16), momentum=M),
    "all entries": Compressed(quantize=QSGD(4, bucket=16), momentum=M),
    "adaptive": Adaptive(TopK(0.05), momentum=M, every=4),
}


def gradient(rank, step):
    return np.random.default_rng((rank, step)).standard_normal(SIZE)


def rate(step):
    return 0.1 * (1 + math.cos(step / 8))


def go_on(comm, method, state, w, steps):
    """Return the state and the weights after some steps."""
    for step in steps:
        lr = rate(step)
        mean, state = method.aggregate(comm, gradient(comm.rank, step), state, lr=lr)
        w = w - lr * mean
    return state, w


def dense(ranks_by_step):
    w, u = np.zeros(SIZE), np.zeros(SIZE)
    for step, ranks in enumerate(ranks_by_step):
        u = M * u + np.mean([gradient(rank, step) for rank in range(ranks)], axis=0)
        w = w - rate(step) * u
    return w


def begin(comm):
    state = {
        k: v.astype(np.float64) if k != "step" else v for k, v in FIRST.init(SIZE).items()
    }
    return go_on(comm, FIRST, state, np.zeros(SIZE), range(HALF))


@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize("name", SECOND)
def test_momentum_is_that_of_dense_training(name, ranks, tmp_path):
    """The mean momentum is kept exactly if one world size is a multiple of the other."""
    method, before = SECOND[name], sparcml.launch(begin, 4)
    for rank, state in enumerate(reshard([s for s, _ in before], ranks)):
        np.savez(tmp_path / f"{rank}.npz", **state)  # type: ignore[arg-type]

    def resume(comm):
        with np.load(tmp_path / f"{comm.rank}.npz", allow_pickle=False) as saved:
            state = method.init(SIZE, dict(saved))
        return go_on(comm, method, state, before[0][1], range(HALF, 2 * HALF))

    after = sparcml.launch(resume, ranks)
    pending = rate(2 * HALF - 1) * np.mean([s["residual"] for s, _ in after], axis=0)
    expected = dense([4] * HALF + [ranks] * HALF)
    for _, w in after:
        np.testing.assert_allclose(w - pending, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize(
    "after", [Compressed(TopK(0.05), warm_up=16), DGC(0.05, warm_up=16)]
)
def test_the_warm_up_goes_on_where_it_was(after, ranks):
    """With another world size and another method, from the step of the state."""
    states = reshard([state for state, _ in sparcml.launch(begin, 2)], ranks)
    schedule = Schedule.warm_up(0.05, 16)
    assert schedule.at(HALF) != schedule.at(0)

    def work(comm):
        state = after.init(SIZE, states[comm.rank])
        counts = []
        for step in range(HALF, 18):
            state = dict.fromkeys(state.keys() - {"step"}, np.zeros(SIZE)) | {
                "step": state["step"]
            }
            # Equal gradients and nothing pending: ranks select the same entries.
            mean, state = after.aggregate(comm, gradient(0, step), state)
            counts.append(np.count_nonzero(mean))
        assert counts == [schedule.at(step).count(SIZE) for step in range(HALF, 18)]

    sparcml.launch(work, ranks)


def test_what_waits_is_below_a_hard_threshold():
    bound = 0.8

    def work(comm):
        method = Compressed(Threshold(bound))
        state = method.init(SIZE)
        for step in range(60):
            _, state = method.aggregate(comm, gradient(comm.rank, step) / 4, state)
            assert np.abs(state["residual"]).max() < bound

    sparcml.launch(work, 2)


@pytest.mark.parametrize(
    ("n", "beta2", "expected"), [(10, 0.99, 0.316), (30, 0.999, 0.182), (100, 0.95, 0.058)]
)
def test_adam_shrinks_steps_of_gradients_that_come_in_bursts(n, beta2, expected):
    """Why error feedback fails under Adam: equal gradients, each sent in every n-th step.

    The second moment remembers many bursts if n (1 - beta2) is small: then it is 1 / sqrt(n).
    """
    beta1, steps = 0.9, 80 * n
    if n * (1 - beta2) < 0.2:
        assert expected == pytest.approx(1 / math.sqrt(n), rel=0.01)
    method = Compressed(TopK(k=1))
    state, m, v, w = method.init(n), np.zeros(n), np.zeros(n), np.zeros(n)
    with sparcml.world() as comm:
        for step in range(1, steps + 1):
            mean, state = method.aggregate(comm, np.full(n, 1e-3, np.float32), state)
            m = beta1 * m + (1 - beta1) * mean
            v = beta2 * v + (1 - beta2) * np.square(mean)
            if step > steps // 2:
                w += m / (1 - beta1**step) / np.sqrt(v / (1 - beta2**step) + 1e-30)
    moved = w.mean() / (steps // 2)  # a dense gradient moves by 1 per step
    assert moved == pytest.approx(expected, rel=0.05)
