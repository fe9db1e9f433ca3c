"""Tests of SCD: the objective never grows and ends at the optimum on any number of ranks."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import sparcml
from sparcml.errors import MismatchError
from sparcml.linear import LOSSES, SCD, Penalty, Rows, SCDState, _core, loops
from sparcml.linear.data.partition import partition_columns
from sparcml.linear.solvers.objective import objective

from .problems import dense, problem

CASES = {
    "logistic": ("logistic", Penalty(l2=0.01)),
    "sparse logistic": ("logistic", Penalty(l1=0.01)),
    "squared hinge": ("squared_hinge", Penalty(l2=0.01)),
    "ridge": ("squared", Penalty(l2=0.02)),
    "lasso": ("squared", Penalty(l1=0.02)),
    "elastic": ("squared", Penalty(l1=0.01, l2=0.01)),
}


def subgradient(rows, loss, penalty, weights, intercept):
    """Return the largest magnitude of the subgradient, with that of the intercept."""
    X = dense(rows)
    ones = np.ones(len(rows)) if rows.weights is None else rows.weights
    slopes = (
        ones * LOSSES[loss].derivative(X @ weights + intercept, rows.labels) / len(rows)
    )
    slope = slopes @ X + penalty.l2 * weights
    at_zero = np.maximum(np.abs(slope) - penalty.l1, 0.0)
    away = np.where(weights == 0, at_zero, slope + penalty.l1 * np.sign(weights))
    return np.abs([*away, slopes.sum()]).max()


@pytest.mark.parametrize(
    ("case", "ranks"), [*((c, r) for c in CASES for r in (1, 2)), ("sparse logistic", 5)]
)
def test_subgradient_is_zero_at_the_end(case, ranks):
    loss, penalty = CASES[case]
    rows = problem(features=40, each=5, signs=loss != "squared")
    rows = replace(rows, weights=np.linspace(0.5, 1.5, len(rows)))
    scd = SCD(loss, penalty, block_size=10, tol=1e-12)

    def descend(comm):
        state = scd.run(comm, rows.part(comm.rank, comm.size))
        return state, state.weights(comm, rows.features)

    found = sparcml.launch(descend, ranks)
    state, weights = found[0]
    assert subgradient(rows, loss, penalty, weights, state.intercept) < 1e-5
    assert np.diff(state.objectives).max() <= 1e-14
    want = objective(sparcml.world(), rows, LOSSES[loss], penalty, weights, state.intercept)
    assert state.objectives[-1] == pytest.approx(want, rel=1e-10)
    for other, same in found[1:]:
        np.testing.assert_array_equal(same, weights)
        np.testing.assert_array_equal(other.margins, state.margins)
        np.testing.assert_array_equal(other.bias, state.bias)


def test_margins_equal_those_of_the_weights():
    rows = problem()
    state = SCD(penalty=Penalty(l2=0.01), epochs=5, intercept=False).run(
        sparcml.world(), rows
    )
    weights = state.weights(sparcml.world(), rows.features)
    np.testing.assert_allclose(state.margins, dense(rows) @ weights, atol=1e-12)
    assert state.intercept == 0


@pytest.mark.parametrize("ranks", [1, 3])
def test_saved_state_resumes_bit_for_bit(ranks):
    rows = problem()
    scd = SCD(penalty=Penalty(l1=0.01), epochs=6, block_size=20, tol=0.0)

    def interrupted(comm):
        mine = rows.part(comm.rank, comm.size)
        half = replace(scd, epochs=3).run(comm, mine)
        kept = {name: array.copy() for name, array in half.arrays().items()}
        return scd.run(comm, mine), scd.run(comm, mine, SCDState.of(kept))

    for whole, resumed in sparcml.launch(interrupted, ranks):
        for name, array in whole.arrays().items():
            np.testing.assert_array_equal(resumed.arrays()[name], array, err_msg=name)


@pytest.mark.parametrize("ranks", [1, 2])
def test_converged_state_stays_converged(ranks):
    rows = problem()
    scd = SCD(penalty=Penalty(l2=0.1), tol=1e-3)

    def again(comm):
        mine = rows.part(comm.rank, comm.size)
        state = scd.run(comm, mine)
        kept = {name: array.copy() for name, array in state.arrays().items()}
        more = replace(scd, tol=1e-6).run(comm, mine, SCDState.of(kept)).epoch
        return state.epoch, scd.run(comm, mine, state).epoch, more

    for first, second, more in sparcml.launch(again, ranks):
        assert first == second < min(more, 1000)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_partition_columns(ranks, monkeypatch):
    rows = replace(problem(count=50, features=17), weights=np.arange(50.0))
    monkeypatch.setattr("sparcml.linear.data.partition.CHUNK_ENTRIES", 20)  # many pieces

    def shared(comm):
        return partition_columns(comm, rows.part(comm.rank, comm.size))

    X = dense(rows)
    for rank, share in enumerate(sparcml.launch(shared, ranks)):
        np.testing.assert_array_equal(share.labels, rows.labels)
        np.testing.assert_array_equal(share.weights, rows.weights)
        columns = share.columns
        assert (
            _core.first_invalid_row(columns.indptr, columns.indices, 50)
            == columns.indptr.size - 1
        )
        for k, column in enumerate(X.T[rank::ranks]):
            span = slice(columns.indptr[k], columns.indptr[k + 1])
            np.testing.assert_array_equal(columns.indices[span], np.flatnonzero(column))
            np.testing.assert_array_equal(columns.values[span], column[column != 0])


def test_bad_settings():
    with pytest.raises(ValueError, match="got hinge, whose kinks"):
        SCD(loss="hinge")
    with pytest.raises(ValueError, match="block_size must be >= 1"):
        SCD(block_size=0)
    with pytest.raises(ValueError, match="got none named"):
        SCDState.of({"bias": np.zeros(2)})
    other = SCD(epochs=1).run(sparcml.world(), problem(features=20))
    with pytest.raises(
        ValueError, match="must have 300 columns of 120 rows on this rank, got 20"
    ):
        SCD().run(sparcml.world(), problem(), other)


def test_separable_classes_without_a_penalty_come_to_an_end():
    rows = Rows.of(np.eye(6), [1, -1, 1, -1, 1, -1])
    with sparcml.world() as comm:
        state = SCD().run(comm, rows)
    assert state.epoch < 500
    assert state.objectives[-1] < 1e-3


COMPILED_CASES = {
    "sparse": {"rows": problem(), "block_size": 7},
    "dense messages": {"rows": problem(features=30, each=9), "block_size": 40},
    "more rounds than columns of a rank": {
        "rows": problem(features=11, each=3),
        "block_size": 1,
    },
    "no intercept": {"rows": problem(), "block_size": 3, "intercept": False},
}


@pytest.mark.parametrize("ranks", [2, 3, 5, 8])
@pytest.mark.parametrize("case", COMPILED_CASES)
def test_compiled_rounds_equal_the_definition(case, ranks):
    """The same bits and messages, and ranks of both kinds take part in one run."""
    options = dict(COMPILED_CASES[case])
    rows = options.pop("rows")
    rows = replace(rows, weights=np.linspace(0.5, 1.5, len(rows)))
    scd = SCD(penalty=Penalty(l1=0.001, l2=0.01), epochs=3, tol=0.0, **options)

    def descend(compiled, comm):
        if comm.rank not in compiled:
            comm._session.use_python()
        state = scd.run(comm, rows.part(comm.rank, comm.size))
        arrays = [state.coordinates, state.margins, state.bias, state.trust_radius]
        stats, number = comm.stats, comm._session.state.sequence
        counts = stats.messages, stats.bytes, stats.received_messages, number
        return [array.tobytes() for array in arrays], state.objectives, counts

    expected = sparcml.launch(partial(descend, ()), ranks)
    for group in (range(ranks), range(0, ranks, 2)):
        assert sparcml.launch(partial(descend, group), ranks) == expected


def test_a_rank_that_raises_between_rounds():
    """The others wait in a compiled call, and raise with the name of the rank."""
    rows = problem()

    def descend(comm):
        def watch(_):
            if comm.rank == 1:
                raise RuntimeError("no more data")

        SCD(epochs=3, block_size=2, tol=0.0).run(
            comm, rows.part(comm.rank, comm.size), watch=watch
        )

    with pytest.raises(RuntimeError, match="no more data"):
        sparcml.launch(descend, 3)


def scd_steps(columns, margins, ranks, trust_radius, coordinates):
    """Return steps for labels of 1."""
    objective = loops.SCDObjective(np.ones(margins.size), np.empty(0), 0, 0.0, 0.1, ranks)
    return loops.SCDSteps(columns, objective, coordinates, trust_radius, margins)


def test_ranks_with_margins_of_different_sizes():
    def body(comm):
        margins = np.zeros(40 + comm.rank)
        columns = loops.Csc(np.array([0, 2]), np.array([3, 5], np.uint32), np.ones(2))
        steps = scd_steps(columns, margins, comm.size, np.ones(1), np.zeros(1))
        with pytest.raises(
            MismatchError, match=r"must have 4[01] values of float64 on all"
        ):
            comm._allgather_add(steps.changes(np.array([0])), margins)
        return float(comm.allreduce(1.0))

    assert sparcml.launch(body, 2) == [2.0, 2.0]


def test_margin_changes_are_those_of_the_columns():
    rng = np.random.default_rng(0)
    size, count = 5000, 30  # more than one group of words
    each = [np.sort(rng.choice(size, 9, replace=False)) for _ in range(count)]
    indptr = np.arange(count + 1) * 9
    columns = loops.Csc(indptr, np.concatenate(each).astype(np.uint32), np.ones(9 * count))
    chosen = rng.permutation(count)[:20]
    coordinates, trust_radius = np.zeros(count), np.ones(count)
    trust_radius[chosen[::4]] = 0.0  # these do not change
    steps = scd_steps(columns, np.zeros(size), 2, trust_radius, coordinates)
    changes = steps.changes(chosen)
    expected = np.zeros(size)
    for j in chosen:
        expected[each[j]] += coordinates[j]
    assert (coordinates[chosen] == 0).sum() == 5
    assert (np.diff(changes.indices.astype(int)) > 0).all()
    assert changes.indices.tolist() == np.flatnonzero(expected).tolist()
    assert changes.values.tolist() == expected[changes.indices].tolist()
    assert steps.changes(chosen[:0]).nnz == 0  # they were taken


def test_arguments_of_steps_are_checked():
    columns = loops.Csc(np.array([0, 2]), np.array([3, 5], np.uint32), np.ones(2))
    one = np.ones(1)
    with pytest.raises(ValueError, match="one value per column"):
        scd_steps(columns, np.zeros(9), 1, np.ones(2), one)
    steps = scd_steps(columns, np.zeros(9), 2, one, one.copy())
    with pytest.raises(ValueError, match="among those given"):
        steps.changes(np.array([1]))
    with pytest.raises(ValueError, match="must exchange changes"):
        steps.run(np.array([0]))
