"""Tests of the estimators on many ranks, each with its own rows."""

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone

import sparcml
from sparcml.linear import DataError, Lasso, LinearSVC, LogisticRegression, Ridge

from .problems import dense, problem

ROWS = problem(count=150, features=60, each=6, signs=False)
X, MARGINS = dense(ROWS), ROWS.labels
NAMES = np.array(["low", "middle", "high"])[np.digitize(MARGINS, [-1.0, 1.0])]
NUMBERS = np.arange(len(X))
WEIGHTS = 0.5 + NUMBERS % 3


def share(comm):
    """Return the bounds of a rank's part; parts have different sizes."""
    return (len(X) * np.array([comm.rank, comm.rank + 1]) ** 2 // comm.size**2).tolist()


def fitted(model, y, ranks, weights=None, rows=X):
    def fit(comm):
        start, stop = share(comm)
        mine = None if weights is None else weights[start:stop]
        own = clone(model).set_params(comm=comm, random_state=comm.rank)
        return own.fit(rows[start:stop], y[start:stop], sample_weight=mine)

    return sparcml.launch(fit, ranks)


STEPPED = {
    "logistic": (LogisticRegression(solver="sgd"), NAMES),
    "hinge": (LinearSVC(loss="hinge", class_weight="balanced"), NAMES),
    "early": (LogisticRegression(early_stopping=True), NAMES),
    "lasso": (Lasso(alpha=0.01, solver="sgd"), MARGINS),
}


@pytest.mark.parametrize("ranks", [2, 5])
@pytest.mark.parametrize("case", STEPPED)
def test_sgd_equals_one_process(case, ranks):
    model, y = STEPPED[case]
    model = clone(model).set_params(batch_size=50, tol=0.3, n_iter_no_change=2)
    alone = clone(model).set_params(random_state=0).fit(X, y, sample_weight=WEIGHTS)
    for found in fitted(model, y, ranks, WEIGHTS):
        np.testing.assert_allclose(found.coef_, alone.coef_, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.intercept_, alone.intercept_, rtol=1e-9)
        assert found.n_iter_ == alone.n_iter_


DESCENDED = {
    "logistic": (LogisticRegression(class_weight={"low": 2.0}), NAMES),
    "svc": (LinearSVC(C=0.1), NAMES),
    "lasso": (Lasso(alpha=0.01), MARGINS),
    "ridge": (Ridge(), MARGINS),
}


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("case", DESCENDED)
@pytest.mark.parametrize("offset", [0.0, 3.0], ids=["sparse", "centred"])
def test_scd_ends_at_the_same_optimum(case, ranks, offset):
    model, y = DESCENDED[case]
    model = clone(model).set_params(tol=1e-13, max_iter=20_000)
    rows = X + offset
    alone = clone(model).fit(rows, y, sample_weight=WEIGHTS)
    first, *others = fitted(model, y, ranks, WEIGHTS, rows)
    np.testing.assert_allclose(first.coef_, alone.coef_, atol=1e-4)
    np.testing.assert_allclose(first.intercept_, alone.intercept_, atol=1e-3)
    for other in others:
        np.testing.assert_array_equal(other.coef_, first.coef_)
        np.testing.assert_array_equal(other.intercept_, first.intercept_)


@pytest.mark.parametrize(
    "labels",
    [np.sort(NAMES), np.sort(MARGINS > 0), NUMBERS // 40, NUMBERS // 40 + 2**60],
    ids=["text", "bool", "int", "wide"],
)
def test_classes_are_gathered_from_all_ranks(labels):
    for model in fitted(LogisticRegression(), labels, 3):
        np.testing.assert_array_equal(model.classes_, np.unique(labels))
        assert model.classes_.dtype.kind == labels.dtype.kind


def test_partial_fit_equals_one_process():
    alone = LogisticRegression(random_state=0)
    for _ in range(2):
        alone.partial_fit(X, NAMES, classes=np.unique(NAMES))

    def fit(comm):
        start, stop = share(comm)
        model = LogisticRegression(comm=comm, random_state=0)
        for _ in range(2):
            model.partial_fit(X[start:stop], NAMES[start:stop], classes=np.unique(NAMES))
        return model.coef_

    for found in sparcml.launch(fit, 4):
        np.testing.assert_allclose(found, alone.coef_, rtol=1e-9, atol=1e-12)


def test_clones_share_the_communicator_and_pickles_have_none():
    with sparcml.world() as comm:
        model = Ridge(comm=comm).fit(X, MARGINS)
        assert clone(model).comm is model.comm is comm
        kept = pickle.loads(pickle.dumps(model))
    assert kept.comm is None
    np.testing.assert_array_equal(kept.predict(X), model.predict(X))


def spoiled(comm, fault):
    """Return a rank's rows and labels, with a mistake on the last rank."""
    last = comm.rank == comm.size - 1
    rows, labels = X[comm.rank :: comm.size].copy(), NAMES[comm.rank :: comm.size]
    if fault == "NaN" and last:
        rows[3, 5] = np.nan
    if fault == "features" and last:
        rows = rows[:, :-1]
    if fault == "classes":
        labels = np.full(len(rows), "low")
    if fault == "kinds" and last:
        labels = np.arange(len(rows)) % 3
    if fault == "rows":
        rows, labels = rows[: comm.rank], labels[: comm.rank]
    return rows, labels


FAULTS = {
    "NaN": "^rank 2: Input X contains NaN",
    "features": "got 60 on rank 0 and 59 on rank 2",
    "classes": "one class: 'low'",
    "kinds": "all be text or all numbers",
    "rows": "a row per rank, got 1 rows",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_mistake_is_raised_on_all_ranks(fault):
    def fit(comm):
        rows, labels = spoiled(comm, fault)
        with pytest.raises(ValueError, match=FAULTS[fault]) as caught:
            LogisticRegression(comm=comm).fit(rows, labels)
        return caught.value

    errors = sparcml.launch(fit, 2 if fault == "rows" else 3)
    assert isinstance(errors[0], DataError)


def test_a_rank_may_have_no_rows():
    def fit(comm):
        mine = slice(0, 0) if comm.rank == 1 else slice(comm.rank // 2, None, 2)
        return LogisticRegression(comm=comm).fit(X[mine], NAMES[mine]).score(X, NAMES)

    assert min(sparcml.launch(fit, 3)) > 0.8
