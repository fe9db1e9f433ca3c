"""Laws 2, 4 and 7 over the whole roster of methods, on threads."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import sparcml
from sparcml.aggregate import reshard

from ..rosters import CONSERVING, METHODS, RANKS
from .gradients import SHAPES, gradient, residual_of

STEPS = 6


def run(method, steps, begin=0):
    """Steps on one rank: what was applied, what was owed, and the state after."""

    def work(comm):
        state = method.init(SHAPES)
        return go_on(comm, method, state, range(begin, begin + steps))

    return work


def go_on(comm, method, state, steps):
    applied = {n: np.zeros(s) for n, s in SHAPES.items()}
    for step in steps:
        mean, state = method.aggregate(comm, gradient(comm.rank, step), state)
        for name, shape in SHAPES.items():
            assert mean[name].shape == shape
            applied[name] += mean[name]
    return applied, state


@cache
def due(ranks, steps):
    """The sum over steps of the mean gradients."""
    total = {n: np.zeros(s) for n, s in SHAPES.items()}
    for rank in range(ranks):
        for step in steps:
            for name, g in gradient(rank, step).items():
                total[name] += g / ranks
    for sums in total.values():
        sums.flags.writeable = False  # they serve many tests
    return total


def assert_conserved(applied, states, wanted):
    for name, shape in SHAPES.items():
        parts = [np.asarray(residual_of(s, name, shape), np.float64) for s in states]
        have = applied[name] + np.mean(parts, axis=0)
        np.testing.assert_allclose(have, wanted[name], atol=2e-4, rtol=0)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", CONSERVING)
def test_nothing_is_lost(name, ranks):
    results = sparcml.launch(run(CONSERVING[name], STEPS), ranks)
    assert_conserved(results[0][0], [s for _, s in results], due(ranks, range(STEPS)))


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", METHODS)
def test_all_ranks_get_the_same_bits_twice(name, ranks):
    first, again = (sparcml.launch(run(METHODS[name], 3), ranks) for _ in range(2))
    for applied, state in [*first, *again]:
        assert int(state["step"]) == 3
        for parameter in SHAPES:
            np.testing.assert_array_equal(applied[parameter], first[0][0][parameter])
    for (_, one), (_, two) in zip(first, again, strict=True):
        assert one.keys() == two.keys()
        for k in one:
            np.testing.assert_array_equal(one[k], two[k])


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("name", METHODS)
def test_gradients_that_are_overwritten_give_the_same(name, ranks):
    def work(comm, overwrite):
        method, mean = METHODS[name], {}
        state = method.init(SHAPES)
        for step in range(3):
            mine = gradient(comm.rank, step)
            found, state = method.aggregate(comm, mine, state, overwrite=overwrite)
            mean = {n: m.copy() for n, m in found.items()}
            for values in mine.values():
                values.fill(np.nan)  # nobody needs it any more
        return mean, state

    kept = sparcml.launch(lambda comm: work(comm, False), ranks)
    for got, want in zip(
        sparcml.launch(lambda comm: work(comm, True), ranks), kept, strict=True
    ):
        for mine, theirs in zip(got, want, strict=True):
            for k in theirs:
                np.testing.assert_array_equal(mine[k], theirs[k])


@pytest.mark.parametrize("name", METHODS)
def test_a_step_leaves_the_old_state_alone(name):
    def work(comm):
        method = METHODS[name]
        state = method.init(SHAPES)
        _, state = method.aggregate(comm, gradient(comm.rank, 0), state)
        before = {k: v.copy() for k, v in state.items()}
        g = gradient(comm.rank, 1)
        kept = {k: v.copy() for k, v in g.items()}
        first, _ = method.aggregate(comm, g, state)
        for k, v in before.items():
            np.testing.assert_array_equal(state[k], v)
        for k, v in kept.items():
            np.testing.assert_array_equal(g[k], v)
        del first

    sparcml.launch(work, 3)


def belongs_to_the_state(method):
    """Oktopk reuses its threshold: it belongs to the communicator, and begins anew with it."""
    return getattr(method, "algorithm", "auto") != "oktopk"


@pytest.mark.parametrize("name", [n for n, m in METHODS.items() if belongs_to_the_state(m)])
def test_a_checkpoint_changes_nothing(name, tmp_path):
    method = METHODS[name]

    def save(comm):
        _, state = go_on(comm, method, method.init(SHAPES), range(3))
        np.savez(tmp_path / f"{comm.rank}.npz", **state)
        return go_on(comm, method, state, range(3, 6))

    def resume(comm):
        with np.load(tmp_path / f"{comm.rank}.npz", allow_pickle=False) as kept:
            state = dict(kept)
        return go_on(comm, method, state, range(3, 6))

    straight, resumed = sparcml.launch(save, 3), sparcml.launch(resume, 3)
    for (a, one), (b, two) in zip(straight, resumed, strict=True):
        assert one.keys() == two.keys()
        for parameter in SHAPES:
            np.testing.assert_array_equal(a[parameter], b[parameter])


@pytest.mark.parametrize("name", CONSERVING)
def test_nothing_is_lost_across_a_checkpoint(name, tmp_path):
    method = CONSERVING[name]

    def save(comm):
        applied, state = go_on(comm, method, method.init(SHAPES), range(3))
        np.savez(tmp_path / f"{comm.rank}.npz", **state)
        return applied

    def resume(comm):
        with np.load(tmp_path / f"{comm.rank}.npz", allow_pickle=False) as kept:
            return go_on(comm, method, dict(kept), range(3, 6))

    first, second = sparcml.launch(save, 3), sparcml.launch(resume, 3)
    applied = {n: first[0][n] + second[0][0][n] for n in SHAPES}
    assert_conserved(applied, [s for _, s in second], due(3, range(6)))


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("name", CONSERVING)
def test_nothing_is_lost_when_ranks_come_and_go(name, ranks):
    method = CONSERVING[name]
    before = sparcml.launch(run(method, 3), 4)
    states = reshard([s for _, s in before], ranks)

    def work(comm):
        return go_on(comm, method, states[comm.rank], range(3, 6))

    after = sparcml.launch(work, ranks)
    applied = {n: before[0][0][n] + after[0][0][n] for n in SHAPES}
    early, late = due(4, range(3)), due(ranks, range(3, 6))
    wanted = {n: early[n] + late[n] for n in SHAPES}
    assert_conserved(applied, [s for _, s in after], wanted)


@pytest.mark.parametrize("name", CONSERVING)
def test_nothing_is_lost_of_what_has_no_gradient_now(name):
    method = CONSERVING[name]

    def work(comm):
        state = method.init(SHAPES)
        applied, state = go_on(comm, method, state, range(3))
        part = {n: g for n, g in gradient(comm.rank, 3).items() if n != "table"}
        mean, state = method.aggregate(comm, part, state)
        for n in part:
            applied[n] += mean[n]
        more, state = go_on(comm, method, state, range(4, 6))
        return {n: applied[n] + more[n] for n in SHAPES}, state

    results = sparcml.launch(work, 3)
    missing = sum(gradient(rank, 3)["table"] / 3 for rank in range(3))
    wanted = due(3, range(6))
    wanted = {**wanted, "table": wanted["table"] - missing}
    assert_conserved(results[0][0], [s for _, s in results], wanted)


@pytest.mark.parametrize("second", CONSERVING)
@pytest.mark.parametrize("first", ["dense", "topk", "onebit", "powersgd", "dgc_plain"])
def test_nothing_is_lost_when_the_method_changes(first, second):
    def work(comm):
        one, two = CONSERVING[first], CONSERVING[second]
        applied, state = go_on(comm, one, one.init(SHAPES), range(3))
        more, state = go_on(comm, two, two.init(SHAPES, state), range(3, 6))
        return {n: applied[n] + more[n] for n in SHAPES}, state

    results = sparcml.launch(work, 3)
    assert_conserved(results[0][0], [s for _, s in results], due(3, range(6)))
