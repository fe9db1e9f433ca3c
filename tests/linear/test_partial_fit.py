"""Tests of `partial_fit` on wide rows: its cost follows the entries, not the columns."""

import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from scipy import sparse
from sklearn.base import clone

from sparcml.linear import Constant, Lasso, LinearSVC, LogisticRegression, Penalty, Ridge
from sparcml.linear.solvers import sgd_state
from sparcml.linear.solvers.sgd_state import SGDState

MODELS: dict[str, Any] = {
    "adaptive": LogisticRegression(random_state=0),
    "adaptive l1": LogisticRegression(l1_ratio=0.5, random_state=0),
    "hinge": LinearSVC(loss="hinge", learning_rate=Constant(0.1), random_state=0),
    "l1": Lasso(alpha=1e-3, random_state=0),
    "l2": Ridge(alpha=1.0, random_state=0),
}


def wide(features, count=10, seed=0):
    """Return sparse rows of 20 columns each, and labels."""
    rng = np.random.default_rng(seed)
    columns = rng.integers(0, features, (count, 20))
    X = sparse.csr_matrix(
        (rng.normal(size=columns.size), columns.ravel(), 20 * np.arange(count + 1)),
        (count, features),
    )
    X.sum_duplicates()
    return X, np.arange(count) % 2


def fitted(model, features, calls, states=1):
    """Return a model after some calls; one epoch of a state may be flushed in each."""
    model = clone(model)
    classes = {"classes": [0, 1]} if hasattr(model, "C") else {}
    for call in range(calls):
        X, y = wide(features, seed=call % states)
        model.partial_fit(X, y, **classes)
    return model


@pytest.mark.parametrize("name", MODELS)
def test_no_call_allocates_an_array_of_the_width(name):
    features = 1 << 20
    model = fitted(MODELS[name], features, 12, states=5)
    X, y = wide(features, seed=9)
    tracemalloc.start()
    try:
        model.partial_fit(X, y)
        model.predict(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < features
    assert "coef_" not in vars(model)


@pytest.mark.parametrize("name", MODELS)
def test_weights_equal_those_of_a_flush_in_every_call(name, monkeypatch):
    """Also with few columns, where many calls are between two flushes."""
    monkeypatch.setattr(sgd_state, "FLUSH_COLUMNS", 2)
    found = fitted(MODELS[name], 100, 120, states=7)
    assert not all(state.flushed for state in found._states)
    monkeypatch.setattr(sgd_state, "FLUSH_COLUMNS", 1000)
    want = fitted(MODELS[name], 100, 120, states=7)
    assert all(state.flushed for state in want._states)
    np.testing.assert_allclose(found.coef_, want.coef_, rtol=1e-9, atol=1e-12)
    assert np.count_nonzero(found.coef_)


@pytest.mark.parametrize("name", MODELS)
def test_margins_do_not_depend_on_whether_weights_are_read(name):
    model = fitted(MODELS[name], 3000, 12, states=5)
    X, _ = wide(3000, 30, seed=3)
    copy = pickle.loads(pickle.dumps(model))
    before = model.predict(X), model._margins(X)
    assert "coef_" not in vars(model)
    assert copy.coef_.shape == (*np.shape(copy.intercept_), 3000)
    np.testing.assert_array_equal(copy.predict(X), before[0])
    np.testing.assert_allclose(copy._margins(X), before[1], rtol=1e-12)
    np.testing.assert_allclose(model._margins(X.toarray()), before[1], rtol=1e-9)
    np.testing.assert_array_equal(model.coef_, copy.coef_)


def test_reading_weights_does_not_change_later_calls():
    read, unread = (fitted(MODELS["adaptive"], 5000, 3) for _ in range(2))
    assert read.coef_.any()
    X, y = wide(5000, seed=8)
    for model in (read, unread):
        model.partial_fit(X, y)
    np.testing.assert_array_equal(read.coef_, unread.coef_)


def test_settings_may_change_between_calls():
    """A penalty that is not a multiple of the one before is applied before it changes."""
    X, y = wide(5000, seed=8)
    models = [fitted(MODELS["adaptive l1"], 5000, 3) for _ in range(2)]
    for state in models[1]._states:
        state.flush()
    for model in models:
        model.set_params(l1_ratio=0.9).partial_fit(X, y).set_params(C=0.1).partial_fit(X, y)
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-9, atol=1e-15)
    models[0].set_params(C=np.inf).partial_fit(X, y)
    assert np.isfinite(models[0].coef_).all()


def test_coef_needs_a_fit():
    model = LogisticRegression()
    assert not hasattr(model, "coef_")
    with pytest.raises(AttributeError, match="coef_ needs a call of fit first"):
        _ = model.coef_


def test_momentum_is_flushed_over_epochs():
    """A table that is extended has room for the steps of all epochs since the last flush."""
    state = SGDState.initial(3, np.float64, Penalty(), momentum=0.5)
    state.begin_epoch(4)
    assert state.model.table.size == 5
    state.model.numbers[1] = 4.0
    state.begin_epoch(4)
    assert state.model.table.size >= 9
