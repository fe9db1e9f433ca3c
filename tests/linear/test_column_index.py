"""Tests of the column index: inactive columns change neither steps nor saved states."""

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sparcml
from sparcml.linear import (
    SGD,
    InverseDecay,
    LogisticRegression,
    Penalty,
    Rows,
    SGDState,
    _core,
)
from sparcml.linear.data.column_index import INACTIVE, MIN_FEATURES, ColumnBitmap
from sparcml.linear.solvers.early_stopping import BestModel

from .problems import problem
from .test_sgd import KINDS, close, resumes_bit_for_bit

FEATURES, STRIDE = MIN_FEATURES + 77, 800


def spread(rows):
    """Return the rows with their columns far apart."""
    return replace(rows, indices=rows.indices * np.uint32(STRIDE) + 5, features=FEATURES)


def solver(kind="plain", **settings):
    chosen = {
        "learning_rate": InverseDecay(0.4),
        "epochs": 2,
        "batch_size": 16,
        **KINDS[kind],
        **settings,
    }
    return SGD(**chosen)


def on_ranks(sgd, rows, ranks, state=None, **more):
    def one(comm):
        return sgd.run(comm, rows.part(comm.rank, comm.size), state, **more)

    return sparcml.launch(one, ranks)[0]


def expected(weights):
    wide = np.zeros(FEATURES)
    wide[5 : 5 + weights.size * STRIDE : STRIDE] = weights
    return wide


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ranks", [1, 3])
def test_steps_equal_those_without_inactive_columns(kind, ranks):
    few, many = problem(), spread(problem())
    state = on_ranks(solver(kind), many, ranks)
    assert state.column_index.active.columns.size <= few.features
    close(state.weights, expected(solver(kind).run(sparcml.world(), few).weights))
    assert state.features == state.weights.size == FEATURES


@pytest.mark.parametrize("kind", ["plain", "momentum", "adaptive elastic"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_saved_state_resumes_bit_for_bit(kind, ranks):
    resumes_bit_for_bit(solver(kind), spread(problem()), ranks)


def test_one_epoch_per_call_equals_one_call():
    rows, sgd = spread(problem()), solver("l2", epochs=3)

    def by_passes(comm):
        mine, state = rows.part(comm.rank, comm.size), None
        for epochs in (1, 2, 3):
            state = replace(sgd, epochs=epochs).run(comm, mine, state)
        return state

    whole = on_ranks(sgd, rows, 2)
    close(sparcml.launch(by_passes, 2)[0].weights, whole.weights)


def test_weights_of_earlier_rows_shrink():
    first, then = problem(), problem(seed=1)
    moved = replace(then, indices=then.indices * np.uint32(STRIDE) + 9, features=FEATURES)
    sgd, comm = solver("l2"), sparcml.world()
    state = sgd.run(comm, spread(first))
    before = state.weights.copy()
    replace(sgd, epochs=4).run(comm, moved, state)
    old = before != 0
    factor = state.weights[old] / before[old]
    assert 0 < factor.max() < 1
    np.testing.assert_allclose(factor, factor[0], rtol=1e-9)
    assert np.count_nonzero(state.weights) > np.count_nonzero(before)


def test_validation_set_may_have_other_columns():
    rows = problem(count=200)
    train, test = spread(rows.take(0, 150)), spread(rows.take(150, 200))
    train = replace(train, total=150)
    strange = np.append(test.indices, np.uint32(3))
    strange = replace(
        test,
        indptr=np.append(test.indptr, test.indptr[-1] + 1),
        indices=strange,
        values=np.append(test.values, 1.0),
        labels=np.append(test.labels, 1.0),
        first=0,
        total=51,
    )
    state = solver(epochs=3).run(sparcml.world(), train, validation=strange)
    margins = strange.to_scipy() @ state.weights + state.intercept
    want = np.log1p(np.exp(-strange.labels * margins)).mean()
    assert state.validation_losses[-1] == pytest.approx(want, rel=1e-9)


def test_all_active_columns_are_not_renumbered():
    count, each = 8, MIN_FEATURES // 8
    indices = np.arange(MIN_FEATURES, dtype=np.uint32)
    labels = np.where(np.arange(count) % 2, 1.0, -1.0)
    rows = Rows(
        np.arange(count + 1) * each, indices, np.ones(MIN_FEATURES), labels, MIN_FEATURES
    )
    state = solver(batch_size=1).run(sparcml.world(), rows)
    assert state.column_index.active is None
    assert state.column_index.rows is rows


def test_dense_communication_has_all_columns():
    rows, told = spread(problem()), []
    for communication in ("sparse", "dense"):
        sgd = solver(communication=communication, penalty=Penalty())
        on_ranks(sgd, rows, 2, watch=lambda progress, _: told.append(progress.dense_bytes))
    steps, sums = 8, 2 * (2 - 1) / 2 * (FEATURES + 1) * 8
    assert max(told) == pytest.approx(2 * steps * sums)


def test_changed_values_are_used():
    rows, comm = spread(problem()), sparcml.world()
    state = solver().run(comm, rows)
    other = replace(rows, values=5 * rows.values)
    fresh = SGDState.of({name: a.copy() for name, a in state.arrays().items()})
    want = solver(epochs=4).run(comm, other, fresh).weights
    close(solver(epochs=4).run(comm, other, state).weights, want)


def test_targets_share_a_column_index():
    rows, comm = spread(problem()), sparcml.world()
    other = replace(
        rows, labels=-rows.labels * np.where(np.arange(len(rows)) % 3, 1.0, -1.0)
    )
    first = solver().run(comm, rows)
    state = solver().init(other)
    state.compress(first.column_index)
    solver().run(comm, other, state)
    assert state.column_index is first.column_index
    np.testing.assert_array_equal(state.weights, solver().run(comm, other).weights)


@pytest.mark.parametrize("ranks", [1, 2])
def test_empty_rows_leave_zero_weights(ranks):
    empty = Rows(
        np.zeros(21, np.int64),
        np.empty(0, np.uint32),
        np.empty(0),
        np.ones(20),
        MIN_FEATURES,
    )
    state = on_ranks(solver(batch_size=2), empty, ranks)
    np.testing.assert_array_equal(state.weights, np.zeros(MIN_FEATURES))


def test_best_model_has_all_columns():
    rows = spread(problem())
    best = BestModel()
    state: Any = None
    for epochs in (1, 2):
        state = solver(epochs=epochs).run(sparcml.world(), rows, state, validation=rows)
        best.update(state)
    np.testing.assert_array_equal(best.weights, state.weights)


def test_pickled_state_has_all_columns_and_no_rows():
    rows = spread(problem())
    state = solver("adaptive").run(sparcml.world(), rows)
    back = pickle.loads(pickle.dumps(state))
    assert back.column_index is None
    np.testing.assert_array_equal(back.weights, state.weights)
    assert back.features == FEATURES


def test_early_stopping_of_an_estimator():
    rows = spread(problem())
    X = rows.to_scipy()
    model = LogisticRegression(
        solver="sgd", early_stopping=True, batch_size=10, max_iter=90, random_state=0
    )
    assert model.fit(X, rows.labels).coef_.shape == (1, FEATURES)
    assert model.score(X, rows.labels) > 0.6


@pytest.mark.parametrize("size", [1, 63, 64, 65, 1000, 100_000])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
def test_places_are_those_of_a_search(isa, size, share):
    rng = np.random.default_rng(size)
    numbers = np.flatnonzero(rng.random(size) < share).astype(np.uint32)
    used = ColumnBitmap(size)
    used.add(np.repeat(rng.permutation(numbers), 2))
    assert used.count() == numbers.size
    np.testing.assert_array_equal(used.columns(), numbers)
    asked = rng.integers(0, size, 500).astype(np.uint32)
    places = np.searchsorted(numbers, asked).astype(np.uint32)
    places[~np.isin(asked, numbers)] = INACTIVE
    np.testing.assert_array_equal(used.positions(asked), places)


def test_numbers_beyond_the_size_are_refused():
    used = ColumnBitmap(64)
    with pytest.raises(ValueError, match="a bit for every column"):
        used.add(np.array([64], np.uint32))
    with pytest.raises(ValueError, match="a bit for every column"):
        used.positions(np.array([3, 64], np.uint32))


def test_arrays_must_fit():
    plane, numbers = np.zeros(2, np.uint64), np.zeros(3, np.uint32)
    with pytest.raises(ValueError, match="one count per word"):
        _core.count_columns(plane, np.zeros(1, np.uint32))
    with pytest.raises(ValueError, match="one position per column"):
        _core.column_positions(
            numbers, plane, np.zeros(2, np.uint32), np.zeros(2, np.uint32)
        )
