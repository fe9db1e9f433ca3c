"""Adaptive: what the knapsack and the choices promise."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import sparcml
from sparcml import QSGD, Adaptive, Compressed, RandomK, Schedule, TopK
from sparcml.aggregate import reshard
from sparcml.aggregate.knapsack import choose_options, total_of

SHAPES = {"flat": (40, 50), "heavy": (50, 60), "bias": (9,)}
TOPK = Adaptive(TopK(0.02), dense_below=100, every=3)
BITS = Adaptive(quantize=QSGD(4, bucket=64), dense_below=100, every=3)


def gradient(rank, step):
    """Equal magnitudes in one layer; in the other a few hundred entries have most of the norm."""
    rng = np.random.default_rng([rank, step])
    g = {n: rng.standard_normal(s).astype(np.float32) for n, s in SHAPES.items()}
    g["flat"] = np.sign(g["flat"])
    g["heavy"] = 3 * g["heavy"] ** 5
    return g


def steps(comm, method, state, numbers):
    applied = {n: np.zeros(s) for n, s in SHAPES.items()}
    for step in numbers:
        mean, state = method.aggregate(comm, gradient(comm.rank, step), state)
        applied = {n: applied[n] + mean[n] for n in SHAPES}
    return applied, state


def run(method, ranks=3, count=7):
    return sparcml.launch(
        lambda comm: steps(comm, method, method.init(SHAPES), range(count)), ranks
    )


def instance(seed, layers=5, options=4):
    """Costs that rise and losses that fall with the option, as bytes and errors do."""
    rng = np.random.default_rng(seed)
    costs = np.cumsum(rng.random((layers, options)), axis=1)
    losses = np.cumsum(rng.exponential(size=(layers, options)), axis=1)[:, ::-1]
    return costs, np.ascontiguousarray(losses)


@pytest.mark.parametrize("bins", [100, 10_000])
@pytest.mark.parametrize("seed", range(20))
def test_a_choice_fits_the_budget_and_is_the_best_that_fits_the_bins(seed, bins):
    costs, losses = instance(seed)
    budget = total_of(costs, np.full(5, 1))
    every = np.array(list(product(range(4), repeat=5)))
    cost, loss = (t[np.arange(5), every].sum(1) for t in (costs, losses))
    units = np.ceil(costs * (bins / budget))[np.arange(5), every].sum(1)
    found = choose_options(costs, losses, budget, bins)
    assert found is not None
    assert total_of(costs, found) <= budget * (1 + 1e-12)
    assert total_of(losses, found) == pytest.approx(loss[units <= bins].min())
    roomy = cost <= budget * (1 - 5 / bins)  # rounding up costs a bin per layer
    assert total_of(losses, found) <= loss[roomy].min() + 1e-9


def test_a_budget_that_is_too_small_has_no_choice():
    costs, losses = instance(0)
    assert choose_options(costs, losses, 0.99 * costs[:, 0].sum()) is None
    assert choose_options(costs, losses, 0.0) is None
    np.testing.assert_array_equal(choose_options(0 * costs, losses, 0.0), [3] * 5)


def measured(method, state, step, rank=0):
    """Bytes and squared error of one rank at the choices of a state, and at the uniform one."""
    totals = np.zeros((2, 2))
    for name in ("flat", "heavy"):
        g = gradient(rank, step)[name].reshape(-1)
        choice = float(state[f"multiple/{name}"])
        for i, option in enumerate((choice, method.uniform)):
            sparsifier = method.with_option(option).sparsify
            sent = sparsifier.select(g)
            error = np.square(g, dtype=np.float64).sum() - np.square(sent.values).sum()
            totals[i] += sent.nnz, error
    return totals


@pytest.mark.parametrize("budget", ["bytes", "error"])
def test_choices_are_better_than_the_uniform_setting(budget):
    method = Adaptive(TopK(0.02), dense_below=100, budget=budget)
    ((_, state),) = run(method, ranks=1, count=1)
    (nnz, error), (uniform_nnz, uniform_error) = measured(method, state, 0)
    if budget == "bytes":
        assert nnz <= 1.05 * uniform_nnz  # indices of a denser layer are shorter
        assert error < 0.9 * uniform_error
    else:
        assert error <= uniform_error
        assert nnz < uniform_nnz


def test_a_larger_budget_sends_more():
    errors = []
    for scale in (0.7, 1.0, 1.4):
        method = Adaptive(TopK(0.02), dense_below=100, scale=scale)
        ((_, state),) = run(method, ranks=1, count=1)
        errors.append(measured(method, state, 0)[0, 1])
    assert errors[0] > errors[1] > errors[2]


@pytest.mark.parametrize("method", [TOPK, BITS])
def test_all_ranks_choose_the_same_and_nothing_is_lost(method):
    results = run(method, ranks=4)
    texts = [method.describe(state) for _, state in results]
    assert texts == texts[:1] * 4
    assert set(texts[0]) == {"flat", "heavy"}
    assert len(set(texts[0].values())) == 2
    for name, shape in SHAPES.items():
        due = sum(gradient(r, s)[name].astype(float) for r in range(4) for s in range(7))
        zero = np.zeros(shape)
        pending = [s.get(f"residual/{name}", zero).reshape(shape) for _, s in results]
        total = results[0][0][name] + np.mean(pending, axis=0)
        np.testing.assert_allclose(total, due / 4, atol=2e-3)


@pytest.mark.parametrize("method", [TOPK, BITS])
@pytest.mark.parametrize("ranks", [1, 2, 3, 7])
def test_choices_survive_resharding(method, ranks):
    states = [state for _, state in run(method, ranks=5, count=4)]
    for state in reshard(states, ranks):
        assert method.describe(state) == method.describe(states[0])


def test_choices_are_kept_between_decisions_and_by_another_adaptive():
    def work(comm):
        state, seen = TOPK.init(SHAPES), []
        for step in range(7):
            _, state = steps(comm, TOPK, state, [step])
            seen.append(float(state["multiple/heavy"]))
        assert seen[0] == seen[1] == seen[2]
        assert seen[3] == seen[4] == seen[5]
        other = Adaptive(TopK(0.01), dense_below=100)
        assert other.init(SHAPES, state)["multiple/heavy"] == seen[-1]

    sparcml.launch(work, 2)


def test_the_warm_up_is_uniform():
    method = Adaptive(TopK(0.02), warm_up=4, dense_below=100)
    plain = Compressed(TopK(0.02), warm_up=4, dense_below=100)
    for (mine, state), (theirs, _) in zip(run(method, 2, 4), run(plain, 2, 4), strict=True):
        assert method.describe(state) == {}
        for name in SHAPES:
            np.testing.assert_array_equal(mine[name], theirs[name])
    assert method.describe(run(method, 2, 5)[0][1])


def test_settings_of_compressed_apply():
    shared: dict[str, Any] = {
        "momentum": 0.9,
        "nesterov": True,
        "clip": 2.0,
        "dense_below": 100,
    }
    one = Adaptive(TopK(0.05), options=(1.0,), **shared)
    for (mine, _), (theirs, _) in zip(
        run(one), run(Compressed(TopK(0.05), **shared)), strict=True
    ):
        for name in SHAPES:
            np.testing.assert_array_equal(mine[name], theirs[name])


def test_a_gradient_of_zeros_keeps_the_uniform_setting():
    comm, state = sparcml.world(), TOPK.init(SHAPES)
    zeros = {n: np.zeros(s, np.float32) for n, s in SHAPES.items()}
    _, state = TOPK.aggregate(comm, zeros, state)
    assert set(TOPK.describe(state).values()) == {0.02}


def test_options_are_multiples_of_the_ratio_of_the_step():
    method = Adaptive(Schedule(((0, TopK(0.1)), (4, TopK(0.02)))), dense_below=100)
    early, late = (method.describe(run(method, 2, count)[0][1]) for count in (3, 5))
    assert early["heavy"] == pytest.approx(5 * late["heavy"])
    assert early["heavy"] > early["flat"]


def test_k_per_bucket_and_a_single_vector():
    method = Adaptive(TopK(k=8, bucket=512), every=1)
    g = np.random.default_rng(0).standard_normal(4096).astype(np.float32)
    mean, state = method.aggregate(sparcml.world(), g, method.init(4096))
    assert np.count_nonzero(mean) == 64
    assert method.describe(state) == {"": 8 / 512}


@pytest.mark.parametrize(
    "bad",
    [
        {"sparsify": None},
        {"sparsify": RandomK(0.1)},
        {"sparsify": Schedule(((0, TopK(0.1)), (5, RandomK(0.1))))},
        {"sparsify": None, "quantize": QSGD(4), "options": (40.0,)},
        {"error_feedback": False},
        {"clip": -1.0},
        {"every": 0},
        {"budget": "time"},
        {"scale": 0},
        {"options": (0.5, -1.0)},
    ],
)
def test_bad_settings_are_refused(bad):
    with pytest.raises((TypeError, ValueError), match=r"(Adaptive|QSGD): \w+ must"):
        Adaptive(**({"sparsify": TopK(0.1)} | bad))
