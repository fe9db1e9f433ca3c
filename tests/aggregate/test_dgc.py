"""Deep Gradient Compression: what momentum, masking, clipping and warm-up promise."""

from __future__ import annotations

import numpy as np
import pytest

import sparcml
from sparcml import DGC, Schedule, TopK

SIZE, STEPS = 600, 12


def noise(*key):
    return np.random.default_rng(key).standard_normal(SIZE).astype(np.float32)


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("masking", [False, True])
def test_sending_all_is_momentum_sgd(nesterov, ranks, masking):
    # Masked momentum is dropped where something was sent, so all of it: plain SGD then.
    def work(comm):
        method = DGC(ratio=1.0, momentum=0.9, nesterov=nesterov, masking=masking)
        state, u = method.init(SIZE), np.zeros(SIZE)
        for step in range(STEPS):
            mean, state = method.aggregate(comm, noise(comm.rank, step), state)
            g = np.mean([noise(r, step) for r in range(comm.size)], axis=0)
            previous = 0 * u if masking else u
            u = 0.9 * (previous + g) if nesterov else 0.9 * previous + g
            np.testing.assert_allclose(mean, u + g if nesterov else u, atol=2e-5)

    sparcml.launch(work, ranks)


def test_momentum_and_residual_are_zero_where_something_was_sent():
    def work(comm):
        method = DGC(ratio=0.05)
        state = method.init(SIZE)
        for step in range(STEPS):
            before = state
            _, state = method.aggregate(comm, noise(comm.rank, step), state)
            u = np.float32(0.9) * before["momentum"] + noise(comm.rank, step)
            v = before["residual"] + u
            sent = np.argsort(-np.abs(v), kind="stable")[:30]
            assert not state["momentum"][sent].any()
            assert not state["residual"][sent].any()
            assert np.count_nonzero(state["momentum"]) == SIZE - 30

    sparcml.launch(work, 3)


@pytest.mark.parametrize("nesterov", [False, True])
def test_without_masking_what_is_sent_and_owed_is_the_sum_of_momenta(nesterov):
    def work(comm):
        method = DGC(ratio=0.05, masking=False, nesterov=nesterov)
        state, sent, u, due = (
            method.init(SIZE),
            np.zeros(SIZE),
            np.zeros(SIZE),
            np.zeros(SIZE),
        )
        for step in range(STEPS):
            mean, state = method.aggregate(comm, noise(comm.rank, step), state)
            sent += mean
            g = noise(comm.rank, step)
            u = 0.9 * (u + g) if nesterov else 0.9 * u + g
            due += u + g if nesterov else u
        owed = comm.allreduce(state["residual"].astype(np.float64), op="mean")
        np.testing.assert_allclose(sent + owed, comm.allreduce(due, op="mean"), atol=1e-4)

    sparcml.launch(work, 3)


def test_gradients_are_clipped_by_their_norm_over_all_parameters():
    shapes = {"a": (20, 30), "b": (40,)}

    def work(comm):
        rng = np.random.default_rng(comm.rank)
        g = {n: 10 * rng.standard_normal(s).astype("f4") for n, s in shapes.items()}
        method = DGC(ratio=1.0, momentum=0.0, clip=3.0, dense_below=0)
        mean, _ = method.aggregate(comm, g, method.init(shapes))
        norm = np.sqrt(sum(np.sum(x.astype("f8") ** 2) for x in g.values()))
        for name in shapes:
            clipped = comm.allreduce(g[name] * (3.0 / 2 / norm), op="mean")
            np.testing.assert_allclose(mean[name], clipped, atol=1e-6)

    sparcml.launch(work, 4)


def test_the_clipped_sum_of_independent_gradients_has_the_norm_asked_for():
    def work(comm):
        method = DGC(ratio=1.0, momentum=0.0, clip=1.0)
        norms = []
        for step in range(50):
            mean, _ = method.aggregate(comm, noise(comm.rank, step), method.init(SIZE))
            norms.append(np.sum((mean.astype("f8") * comm.size) ** 2))
        assert np.mean(norms) == pytest.approx(1.0, rel=0.1)

    sparcml.launch(work, 4)


def test_a_huge_gradient_is_clipped_and_not_lost():
    method = DGC(ratio=1.0, momentum=0.0, clip=1.0)
    g = np.array([1e20, 0, 0, -1e20], np.float32)
    mean, _ = method.aggregate(sparcml.world(), g, method.init(4))
    np.testing.assert_allclose(mean, [0.5**0.5, 0, 0, -(0.5**0.5)], rtol=1e-6)


def test_momentum_survives_a_change_of_settings():
    comm, one, two = sparcml.world(), DGC(ratio=0.1), DGC(ratio=0.2)
    _, state = one.aggregate(comm, noise(0), one.init(SIZE))
    taken = two.init(SIZE, state)
    np.testing.assert_array_equal(taken["momentum"], state["momentum"])


def test_warm_up_sends_a_quarter_first_and_falls_to_the_ratio():
    def work(comm):
        method = DGC(ratio=0.005, warm_up=8)
        state, counts = method.init(SIZE), []
        for step in range(10):
            mean, state = method.aggregate(comm, noise(step), state)
            counts.append(np.count_nonzero(mean))
        assert counts == [150, 150, 38, 38, 9, 9, 3, 3, 3, 3]

    sparcml.launch(work, 1)


def test_schedules():
    plan = Schedule.warm_up(0.001, 100)
    got = [plan.at(s) for s in (0, 24, 25, 50, 75, 99, 100, 10_000)]
    ratios = [0.25, 0.25, 1 / 16, 1 / 64, 1 / 256, 1 / 256, 0.001, 0.001]
    assert got == [TopK(ratio) for ratio in ratios]
    falling = Schedule.falling(0.01, 1000)
    got = [falling.at(s) for s in (0, 49, 50, 200, 499, 500, 750, 5000)]
    assert got == [TopK(r) for r in (0.25, 0.25, 0.08, 0.04, 0.04, 0.02, 0.01, 0.01)]
    assert str(Schedule.falling(0.05, 40)) == (
        "Schedule({0: TopK(ratio=0.25), 2: TopK(ratio=0.08), 8: TopK(ratio=0.05), "
        "20: TopK(ratio=0.05), 30: TopK(ratio=0.05)})"
    )
    assert Schedule.falling(TopK(k=8, bucket=512), 100).at(99) == TopK(k=8, bucket=512)
    with pytest.raises(ValueError, match="steps must be at least 1"):
        Schedule.falling(0.01, 0)
    for stages in ((), ((1, TopK(0.1)),), ((0, TopK(0.1)), (0, TopK(0.2)))):
        with pytest.raises(ValueError, match="begin at 0 and ascend"):
            Schedule(stages)
    with pytest.raises(TypeError, match="sparsifiers"):
        Schedule(((0, 0.1),))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "bad", [{"ratio": 0}, {"ratio": 2}, {"momentum": 1.0}, {"clip": 0}, {"warm_up": -1}]
)
def test_bad_settings_are_refused(bad):
    with pytest.raises(ValueError, match=r"must be|ratio"):
        DGC(**bad)
