"""TopKAdam and OneBitAdam: both phases, the floor, and what is conserved."""

from __future__ import annotations

import numpy as np
import pytest

import sparcml
from sparcml import Dense, OneBitAdam, TopK, TopKAdam
from sparcml.aggregate import reshard

SHAPE, LR = (20, 15), 0.01
TWO_PHASES = {
    "topk": TopKAdam(TopK(0.05), warm_up=3, dense_below=10),
    "topk quantized": TopKAdam(
        sparsify=TopK(0.05), quantize=sparcml.QSGD(8), warm_up=3, dense_below=10
    ),
    "onebit": OneBitAdam(warm_up=3, dense_below=10),
}


def gradient(rank, step):
    rng = np.random.default_rng((rank, step))
    return {"w": rng.standard_normal(SHAPE), "b": rng.standard_normal(7)}


def mean_gradient(ranks, step):
    parts = [gradient(rank, step) for rank in range(ranks)]
    return {n: np.mean([p[n] for p in parts], axis=0) for n in parts[0]}


def shapes():
    return {"w": SHAPE, "b": (7,)}


class Adam:
    """Adam as in the paper, on the mean gradient, with a second moment that may be frozen."""

    def __init__(self, shape, freeze=10**9):
        self.m, self.v, self.t, self.freeze = np.zeros(shape), np.zeros(shape), 0, freeze

    def update(self, g, lr):
        self.t += 1
        self.m = 0.9 * self.m + 0.1 * g
        if self.t <= self.freeze:
            self.v = 0.999 * self.v + 0.001 * g * g
        t = min(self.t, self.freeze)
        unbiased = self.v / (1 - 0.999**t)
        if self.t > self.freeze:
            unbiased = np.maximum(unbiased, 0.01 * unbiased.mean())
        return lr * self.m / (1 - 0.9**self.t) / (np.sqrt(unbiased) + 1e-8)


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("sparsify", [TopK(1.0), TopK(0.05)])
def test_before_the_freeze_it_is_adam(sparsify, ranks):
    method = TopKAdam(sparsify, first=None, warm_up=100, dense_below=10)

    def work(comm):
        adam, state = {n: Adam(s) for n, s in shapes().items()}, method.init(shapes())
        for step in range(5):
            update, state = method.aggregate(comm, gradient(comm.rank, step), state, lr=LR)
            for name, g in mean_gradient(comm.size, step).items():
                np.testing.assert_allclose(
                    update[name], adam[name].update(g, LR), rtol=1e-6, atol=1e-9
                )

    sparcml.launch(work, ranks)


@pytest.mark.parametrize("ranks", [1, 3])
def test_sending_all_updates_is_adam_with_a_frozen_second_moment(ranks):
    method = TopKAdam(TopK(1.0), first=None, warm_up=3, dense_below=10)

    def work(comm):
        adam = {"w": Adam(SHAPE, freeze=3), "b": Adam(7)}
        state = method.init(shapes())
        for step in range(8):
            lr = LR / (1 + step)
            update, state = method.aggregate(comm, gradient(comm.rank, step), state, lr=lr)
            for name, g in mean_gradient(comm.size, step).items():
                np.testing.assert_allclose(
                    update[name], adam[name].update(g, lr), rtol=1e-5, atol=1e-8
                )

    sparcml.launch(work, ranks)


@pytest.mark.parametrize("lr", [LR, None])
@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_no_update_is_lost(ranks, lr):
    # Applied + pending updates are those of frozen Adam on the mean gradient, as in law 4.
    method = TopKAdam(TopK(0.02), first=None, warm_up=3, dense_below=10)

    def work(comm):
        adam, state = Adam(SHAPE, freeze=3), method.init(shapes())
        applied, expected = np.zeros(SHAPE), np.zeros(SHAPE)
        for step in range(20):
            g = gradient(comm.rank, step)
            update, state = method.aggregate(comm, g, state, lr=lr)
            applied += update["w"]
            expected += adam.update(mean_gradient(comm.size, step)["w"], lr or 1)
        residual = comm.allreduce(state["residual/w"].astype(np.float64), op="mean")
        pending = (lr or 1) * (residual / state["denominator/w"]).reshape(SHAPE)
        np.testing.assert_allclose(applied + pending, expected, atol=2e-5 * (lr or 1) / LR)

    sparcml.launch(work, ranks)


def test_pending_updates_do_not_change_with_the_learning_rate():
    method = TopKAdam(TopK(k=1), first=None, warm_up=1, dense_below=10)
    state = method.init(shapes())
    with sparcml.world() as comm:
        for step, lr in enumerate((0.1, 0.1, 0.1, 0.01)):
            before = state
            update, state = method.aggregate(comm, gradient(0, step), state, lr=lr)
        m = state["exp_avg/w"] / (1 - 0.9**4)
        denominator = state["denominator/w"]
        have = 0.01 * state["residual/w"] / denominator + update["w"].reshape(-1)
        want = (0.1 * before["residual/w"] + 0.01 * m) / denominator
        np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-7)


def test_onebit_moments_and_residuals_add_up():
    method = OneBitAdam(warm_up=2, first=None, dense_below=10)

    def work(comm):
        state = method.init(shapes())
        for step in range(10):
            before = state
            g = gradient(comm.rank, step)
            _, state = method.aggregate(comm, g, state, lr=LR)
            if step < 2:
                continue
            # Every rank has the same m; its decay and the new gradients arrive now or later.
            old, new = (
                comm.allreduce(s["residual/w"].astype(np.float64), op="mean")
                for s in (before, state)
            )
            due = 0.9 * before["exp_avg/w"]
            due = due + 0.1 * (mean_gradient(comm.size, step)["w"].reshape(-1) + old)
            np.testing.assert_allclose(state["exp_avg/w"] + 0.1 * new, due, atol=1e-5)

    sparcml.launch(work, 3)


def test_onebit_moves_no_weight_without_a_gradient_for_long():
    """Signs have no zero: such weights move back and forth, and get nowhere."""
    method = OneBitAdam(warm_up=2, first=None, dense_below=10)

    def work(comm):
        state, moved, longest = method.init(SHAPE), np.zeros(SHAPE[1]), 0.0
        for step in range(40):
            g = gradient(comm.rank, step)["w"]
            g[4] = 0.0
            update, state = method.aggregate(comm, g, state, lr=LR)
            moved += update[4]
            longest = max(longest, float(np.abs(update[4]).max()))
        assert longest > 0
        assert np.abs(moved).max() <= 2 * longest

    sparcml.launch(work, 2)


def test_the_frozen_second_moment_has_a_floor():
    method = TopKAdam(warm_up=2, floor=0.01, first=None, dense_below=10)
    shape = (40, 5)
    g = np.ones(shape)
    g[3] = 0.0  # never reached in the first phase: it would be divided by eps
    state = method.init(shape)
    with sparcml.world() as comm:
        for _ in range(2):
            _, state = method.aggregate(comm, g, state, lr=LR)
        floor = np.sqrt(0.01 * np.mean(g * g)) + 1e-8
        rows = state["denominator"].reshape(shape)
        np.testing.assert_allclose(rows[3], floor, rtol=1e-5)
        np.testing.assert_allclose(rows[4], 1.0, rtol=1e-3)
        update, _ = method.aggregate(comm, np.ones(shape), state, lr=LR)
    assert np.abs(update).max() < 2 * LR / floor


def test_a_learning_rate_of_zero_moves_and_loses_nothing():
    method = TWO_PHASES["topk"]
    state = method.init(shapes())
    with sparcml.world() as comm:
        for step in range(5):
            _, state = method.aggregate(comm, gradient(0, step), state, lr=LR)
        before = state
        update, state = method.aggregate(comm, gradient(0, 5), state, lr=0.0)
        assert not update["w"].any()
        for k in ("residual/w", "denominator/w", "learning_rate/w"):
            np.testing.assert_array_equal(state[k], before[k])


@pytest.mark.parametrize("name", TWO_PHASES)
def test_a_resumed_run_has_the_same_bits(name, tmp_path):
    method = TWO_PHASES[name]

    def work(comm):
        def steps(state, numbers):
            updates = []
            for step in numbers:
                g = gradient(comm.rank, step)
                update, state = method.aggregate(comm, g, state, lr=LR)
                updates.append(update)
            return updates, state

        expected, _ = steps(method.init(shapes()), range(9))
        for stop in (2, 3, 5):  # in the first phase, at its end, in the second
            _, state = steps(method.init(shapes()), range(stop))
            file = tmp_path / f"{comm.rank}-{stop}.npz"
            np.savez(file, **state)
            with np.load(file) as saved:
                resumed, _ = steps(dict(saved), range(stop, 9))
            for update, other in zip(expected[stop:], resumed, strict=True):
                for n in update:
                    np.testing.assert_array_equal(update[n], other[n])

    sparcml.launch(work, 2)


def test_the_next_method_takes_over_the_residual_as_gradients():
    # A residual r in the gradient moves the weights by lr r / denominator in the end.
    method = TWO_PHASES["topk"]
    state = method.init(shapes())
    with sparcml.world() as comm:
        for step in range(6):
            _, state = method.aggregate(comm, gradient(0, step), state, lr=LR)
        after = Dense().init(shapes(), state)
        mean, _ = Dense().aggregate(comm, gradient(0, 6), after, lr=LR)
    expected = gradient(0, 6)["w"].reshape(-1) + state["residual/w"]
    np.testing.assert_allclose(mean["w"].reshape(-1), expected, rtol=1e-5)


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_moments_survive_a_change_of_the_world_size(ranks):
    method = TWO_PHASES["topk"]

    def first(comm):
        state = method.init(shapes())
        for step in range(5):
            _, state = method.aggregate(comm, gradient(comm.rank, step), state, lr=LR)
        return state

    old = sparcml.launch(first, 4)
    new = reshard(old, ranks)
    for k in ("denominator/w", "adam_step/w", "exp_avg_sq/b"):
        for state in new:
            np.testing.assert_array_equal(state[k], old[0][k])
    means = [np.mean([s["residual/w"] for s in states], axis=0) for states in (old, new)]
    np.testing.assert_allclose(means[1], means[0], atol=1e-6)

    def second(comm):
        return method.aggregate(comm, gradient(comm.rank, 5), new[comm.rank], lr=LR)[0]["w"]

    updates = sparcml.launch(second, ranks)
    for update in updates[1:]:
        np.testing.assert_array_equal(update, updates[0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"warm_up": 0.1}, "steps must be the number of steps"),
        ({"warm_up": 0}, "warm_up must be at least 1"),
        ({"warm_up": 5, "betas": (0.9, 1.0)}, "betas must be two numbers"),
        ({"warm_up": 5, "eps": 0.0}, "eps must be positive"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=f"TopKAdam: {message}"):
        TopKAdam(**settings)


@pytest.mark.parametrize("form", [OneBitAdam, TopKAdam])
def test_the_first_phase_has_a_default(form):
    assert form().freeze_step == 1000
    assert form(steps=400).freeze_step == 60
    assert form(warm_up=0.5, steps=400).freeze_step == 200
    assert form.from_option("") == form()
    _, state = form().aggregate(sparcml.world(), gradient(0, 0), form().init(shapes()))
    assert int(state["step"]) == 1


@pytest.mark.parametrize("name", TWO_PHASES)
def test_a_state_of_the_same_class_is_taken_over(name):
    method = TWO_PHASES[name]
    _, state = method.aggregate(sparcml.world(), gradient(0, 0), method.init(shapes()))
    taken = method.init(shapes(), state)
    assert taken.keys() == state.keys()
    for k, value in state.items():
        np.testing.assert_array_equal(taken[k], value)
