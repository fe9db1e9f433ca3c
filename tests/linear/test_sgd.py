"""Tests of SGD: the steps of a reference, on any number of ranks."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import sparcml
from sparcml.errors import DataError, MismatchError, TransportError
from sparcml.linear import SGD, Constant, InverseDecay, Penalty, Rows, SGDState

from .problems import problem, reference_sgd

KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "l1": {"penalty": Penalty(l1=2e-3)},
    "l2": {"penalty": Penalty(l2=3e-2)},
    "elastic": {"penalty": Penalty(l1=2e-3, l2=3e-2)},
    "momentum": {"momentum": 0.9, "penalty": Penalty(l2=3e-2)},
    "slow intercept": {"intercept_rate": 0.1, "penalty": Penalty(l2=3e-2)},
    "adaptive": {"adaptive": 1e-3, "intercept_rate": 0.5},
    "adaptive l1": {"adaptive": 1e-6, "penalty": Penalty(l1=2e-3)},
    "adaptive elastic": {"adaptive": 0.5, "penalty": Penalty(l1=2e-3, l2=3e-2)},
}
over_kinds = pytest.mark.parametrize("kind", KINDS)


def close(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11)


def solver(kind="plain", **settings):
    return SGD(
        **{
            "learning_rate": InverseDecay(0.4),
            "epochs": 2,
            "batch_size": 16,
            **KINDS[kind],
            **settings,
        }
    )


def on_ranks(sgd, rows, ranks, **more):
    states = sparcml.launch(lambda c: sgd.run(c, rows.part(c.rank, c.size), **more), ranks)
    for state in states[1:]:
        np.testing.assert_array_equal(state.weights, states[0].weights)
        assert state.intercept == states[0].intercept
    return states[0]


def resumes_bit_for_bit(sgd, rows, ranks):
    """Check that a state saved within an epoch resumes on the same number of ranks."""

    def interrupted(comm):
        mine, kept = rows.part(comm.rank, comm.size), []

        def keep(progress, state):
            if progress.epoch == 1 and progress.step == 3:
                kept.append({name: a.copy() for name, a in state.arrays().items()})

        whole = sgd.run(comm, mine, watch=keep, every=3)
        return whole, sgd.run(comm, mine, SGDState.of(kept[0]))

    for whole, resumed in sparcml.launch(interrupted, ranks):
        for name, array in whole.arrays().items():
            np.testing.assert_array_equal(resumed.arrays()[name], array, err_msg=name)


@over_kinds
@pytest.mark.parametrize("batch", [1, 16])
def test_one_rank_equals_reference_sgd(kind, batch):
    rows, sgd = problem(), solver(kind, batch_size=batch)
    weights, intercept = reference_sgd(sgd, rows)
    state = sgd.run(sparcml.world(), rows)
    close(state.weights, weights)
    assert state.intercept == pytest.approx(intercept, rel=1e-9)
    assert (weights == 0).sum() == (state.weights == 0).sum()


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge", "squared"])
@pytest.mark.parametrize("intercept", [True, False])
def test_each_loss_equals_reference_sgd(loss, intercept):
    rows = problem(signs=loss != "squared")
    rows = replace(rows, weights=np.linspace(0.0, 2.0, len(rows)))
    sgd = solver(loss=loss, learning_rate=InverseDecay(0.05), intercept=intercept)
    weights, bias = reference_sgd(sgd, rows)
    for state in (sgd.run(sparcml.world(), rows), on_ranks(sgd, rows, 2)):
        close(state.weights, weights)
        assert state.intercept == pytest.approx(bias, rel=1e-9)


@over_kinds
@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_same_iterates_on_any_number_of_ranks(kind, ranks):
    rows, sgd = problem(), solver(kind)
    alone = sgd.run(sparcml.world(), rows)
    for communication in ("sparse", "dense"):
        state = on_ranks(replace(sgd, communication=communication), rows, ranks)
        close(state.weights, alone.weights)
        assert state.losses == pytest.approx(alone.losses, rel=1e-9)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_momentum_does_not_weaken_the_penalty(momentum):
    """Full batches of the squared loss converge to the solution of the linear equations."""
    rows = problem(features=20, signs=False)
    sgd = solver(
        loss="squared",
        penalty=Penalty(l2=0.1),
        learning_rate=Constant(0.5 * (1 - momentum)),
        batch_size=len(rows),
        epochs=600,
        momentum=momentum,
        intercept=False,
    )
    X = rows.to_scipy().toarray()
    square = X.T @ X / len(rows) + 0.1 * np.eye(20)
    want = np.linalg.solve(square, X.T @ rows.labels / len(rows))
    close(sgd.run(sparcml.world(), rows).weights, want)


def test_float32_rows_give_a_float32_model_close_to_that_of_float64():
    wide, narrow = problem(), problem(dtype=np.float32)
    sgd = solver("elastic")
    state = sgd.run(sparcml.world(), narrow)
    assert state.weights.dtype == np.float32
    want = sgd.run(sparcml.world(), wide).weights
    np.testing.assert_allclose(state.weights, want, atol=1e-5)


def test_more_ranks_than_rows():
    rows = problem(count=3)
    alone = solver().run(sparcml.world(), rows)
    close(on_ranks(solver(), rows, 5).weights, alone.weights)


def test_strong_l2_does_not_underflow():
    """The product of all factors is far below the smallest float."""
    rows = problem()
    sgd = solver(penalty=Penalty(l1=1e-3, l2=1.9), batch_size=1, epochs=3)
    weights, _ = reference_sgd(sgd, rows)
    close(sgd.run(sparcml.world(), rows).weights, weights)


@over_kinds
@pytest.mark.parametrize("ranks", [1, 3])
def test_saved_state_resumes_bit_for_bit(kind, ranks):
    resumes_bit_for_bit(solver(kind), problem(), ranks)


def test_residual_is_in_the_state():
    rows = problem(features=64)
    lossy = solver(method=sparcml.Compressed(sparcml.TopK(0.2)), epochs=8)
    exact = on_ranks(solver(method=sparcml.Dense(), epochs=8), rows, 2)
    plain = on_ranks(solver(epochs=8), rows, 2)
    close(exact.weights, plain.weights)
    state = on_ranks(lossy, rows, 2)
    assert np.any(state.arrays()["method/residual"])
    assert state.losses[-1] < 1.2 * plain.losses[-1]


def test_progress():
    rows, seen = problem(), []
    on_rank = lambda c: solver(epochs=1).run(  # noqa: E731
        c,
        rows.part(c.rank, c.size),
        watch=lambda p, _: seen.append(p) if c.rank == 0 else None,
        every=4,
    )
    state = sparcml.launch(on_rank, 2)[0]
    assert [p.step for p in seen] == [4, 8]
    assert np.average([p.loss for p in seen], weights=[64, 56]) == pytest.approx(
        state.losses[0]
    )
    assert 0 < seen[-1].communication_seconds < seen[-1].seconds
    assert seen[-1].dense_bytes == 8 * 8 * 301
    assert seen[-1].bytes > seen[0].bytes > 0


def test_dense_allreduce_counts_as_a_ring():
    rows, seen = problem(), []
    on_rank = lambda c: solver(epochs=1, communication="dense").run(  # noqa: E731
        c,
        rows.part(c.rank, c.size),
        watch=lambda p, _: seen.append(p) if c.rank == 0 else None,
    )
    sparcml.launch(on_rank, 2)
    assert seen[-1].bytes >= seen[-1].dense_bytes > 0


def test_early_stopping():
    rows = problem(count=60, features=2000, each=4)
    sgd = solver(learning_rate=InverseDecay(5.0), epochs=50, patience=2, batch_size=1)
    state = sgd.run(
        sparcml.world(), rows, validation=problem(count=60, features=2000, seed=1)
    )
    assert state.epoch < 50
    assert len(state.validation_losses) == state.epoch
    assert min(state.validation_losses[-2:]) >= min(state.validation_losses[:-2]) * (
        1 - 1e-4
    )


def test_diverging_loss_raises_with_a_remedy():
    rows = problem(signs=False)
    sgd = solver(loss="squared", learning_rate=Constant(50.0), epochs=60)
    with (
        pytest.raises(FloatingPointError, match=r"epoch \d+.*lower the learning rate"),
        np.errstate(all="ignore"),
    ):
        sgd.run(sparcml.world(), rows)


def test_bad_settings():
    with pytest.raises(ValueError, match="logistic, hinge"):
        SGD(loss="log")
    with pytest.raises(ValueError, match="momentum must be 0 with an l1 penalty"):
        SGD(momentum=0.9, penalty=Penalty(l1=0.1))
    with pytest.raises(ValueError, match="momentum must be 0 with adaptive"):
        SGD(momentum=0.9, adaptive=1.0)
    with pytest.raises(ValueError, match="adaptive must be finite and >= 1e-30, got 0"):
        SGD(adaptive=0)
    with pytest.raises(ValueError, match="intercept_rate must be finite and > 0, got 0"):
        SGD(intercept_rate=0.0)
    with pytest.raises(ValueError, match=r"batch_size must be >= 1, got 0"):
        SGD(batch_size=0)
    with pytest.raises(ValueError, match="rate \\* l2 must be below 1"):
        SGD(penalty=Penalty(l2=20.0)).run(sparcml.world(), problem())


def test_bad_rows():
    with pytest.raises(DataError, match="row 0: labels must be -1 or 1"):
        SGD().run(sparcml.world(), problem(signs=False))
    good = problem()
    with pytest.raises(DataError, match=r"row 0: columns must ascend and be below 5"):
        SGD().run(sparcml.world(), replace(good, features=5))
    with pytest.raises((MismatchError, TransportError), match="each once"):
        sparcml.launch(lambda c: SGD().run(c, good), 2)
    with pytest.raises(ValueError, match="the state must have 40 features"):
        SGD().run(sparcml.world(), problem(features=40), SGD().init(good))
    with pytest.raises(ValueError, match="the same penalty"):
        SGD().run(sparcml.world(), good, SGD(adaptive=1.0).init(good))


def test_empty_rows():
    empty = Rows.of(np.zeros((0, 4)), [])
    state = SGD().run(sparcml.world(), empty)
    assert not state.weights.any()
    assert state.epoch == 5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", ["plain", "l2", "momentum", "adaptive elastic"])
def test_incompatible_state_is_refused(kind, other):
    rows, comm = problem(), sparcml.world()
    state = solver(kind).run(comm, rows)
    plain = {"plain", "l2", "slow intercept"}  # of these the state is the same
    if kind == other or {kind, other} <= plain or {kind, other} == {"l1", "elastic"}:
        solver(other, epochs=3).run(comm, rows, state)
    else:
        with pytest.raises(ValueError, match="the same penalty, momentum"):
            solver(other, epochs=3).run(comm, rows, state)


def test_batch_size_must_not_change_within_an_epoch():
    rows, comm, kept = problem(), sparcml.world(), []
    keep = lambda _, state: kept.append(  # noqa: E731
        {name: array.copy() for name, array in state.arrays().items()}
    )
    solver().run(comm, rows, watch=keep, every=3)
    with pytest.raises(
        ValueError, match="batch_size must stay the same within an epoch, got 20"
    ):
        solver(batch_size=20).run(comm, rows, SGDState.of(kept[0]))


def test_validation_set_of_another_width_is_refused():
    with pytest.raises(ValueError, match=r"validation set must have 300 .* got 301"):
        solver().run(sparcml.world(), problem(), validation=problem(features=301))


STEP_CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "l1": {"penalty": Penalty(l1=0.01)},
    "l2, no intercept": {"penalty": Penalty(l2=0.1), "intercept": False},
    "momentum": {"momentum": 0.9, "intercept_rate": 0.5},
    "adaptive": {"adaptive": 1.0, "penalty": Penalty(l1=0.001, l2=0.01)},
    "hinge": {"loss": "hinge", "algorithm": "ssar_split_allgather"},
}


@pytest.mark.parametrize("ranks", [2, 3, 5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", STEP_CASES)
def test_compiled_allreduces_give_the_same_steps(case, dtype, ranks):
    """The same bits, losses and messages, and ranks of both kinds take part in one run."""
    rows = problem(count=230, features=400, dtype=dtype)
    sgd = SGD(
        **{"learning_rate": Constant(0.1), "batch_size": 8, "epochs": 3, **STEP_CASES[case]}
    )

    def train(compiled, comm):
        if comm.rank not in compiled:
            comm._session.use_python()
        state = sgd.run(comm, rows.part(comm.rank, comm.size))
        counts = comm.stats.messages, comm.stats.bytes, comm._session.state.sequence
        calls = {name: p.calls for name, p in comm.stats.allreduces.items()}
        arrays = [np.array(state.weights), np.array([state.intercept])]
        return [array.tobytes() for array in arrays], state.losses, counts, calls

    expected = sparcml.launch(partial(train, ()), ranks)
    for group in (range(ranks), range(0, ranks, 2)):
        assert sparcml.launch(partial(train, group), ranks) == expected


def test_a_rank_that_raises_between_steps():
    """Ranks in allreduces raise with the name of a rank that has ended."""
    rows = problem()

    def train(comm):
        def watch(progress, _):
            if comm.rank == 1 and progress.epoch == 2:
                raise RuntimeError("no more data")

        SGD(batch_size=8, epochs=5).run(comm, rows.part(comm.rank, comm.size), watch=watch)

    with pytest.raises(RuntimeError, match="no more data"):
        sparcml.launch(train, 3)


def test_communication_seconds_of_a_simulated_run():
    """The virtual clock advances by messages only, so all of its time is communication."""
    rows = problem()

    def train(comm):
        start, seen = comm.now(), []
        SGD(batch_size=40, epochs=2).run(
            comm,
            rows.part(comm.rank, comm.size),
            watch=lambda progress, _: seen.append(progress),
            every=10**6,
        )
        return seen[-1].communication_seconds, comm.now() - start

    first, again = (sparcml.simulate(train, ranks=2, network="1gbit") for _ in range(2))
    assert first.results == again.results  # no real time
    assert all(0 < communication <= seconds for communication, seconds in first.results)
