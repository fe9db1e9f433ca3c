"""Tests of the estimators against scikit-learn's: optimum, conventions, errors."""

import pickle
import subprocess
import sys
import warnings
from types import ModuleType
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from scipy import sparse
from sklearn import linear_model, svm
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import scale

import sparcml
from sparcml.linear import (
    LOSSES,
    Constant,
    DataError,
    ExponentialDecay,
    Lasso,
    LinearSVC,
    LogisticRegression,
    Ridge,
)


def synthetic(count=300, features=1000, density=0.02):
    """Return sparse rows and targets that are nearly linear in them."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((count, features), density=density, rng=rng, format="csr")
    return X, X @ rng.normal(size=features) + 0.3 + 0.05 * rng.normal(size=count)


def signs(X, y):
    return X, np.where(y > np.median(y), 1.0, -1.0)


def of_two(data):
    X, y = data(return_X_y=True)
    return scale(X), np.where(y % 2, 1.0, -1.0)


CLASSES = {
    "breast cancer": of_two(load_breast_cancer),
    "digits": of_two(load_digits),
    "sparse": signs(*synthetic()),
}
NUMBERS = {
    "diabetes": load_diabetes(return_X_y=True),
    "digits": load_digits(return_X_y=True),
    "sparse": synthetic(),
}
PAIRS = {
    "logistic": (
        LogisticRegression(),
        linear_model.LogisticRegression(tol=1e-8, max_iter=9999),
        lambda w, n: 0.5 * w @ w / n,
    ),
    "squared_hinge": (
        LinearSVC(fit_intercept=False),  # scikit-learn's penalises it
        svm.LinearSVC(fit_intercept=False, dual=False, tol=1e-8),
        lambda w, n: 0.5 * w @ w / n,
    ),
    "lasso": (
        Lasso(alpha=0.01),
        linear_model.Lasso(alpha=0.01, tol=1e-8),
        lambda w, n: 0.01 * np.abs(w).sum(),
    ),
    "ridge": (
        Ridge(),
        linear_model.Ridge(tol=1e-8),
        lambda w, n: 0.5 * w @ w / n,
    ),
}


def objective(model, X, y, loss, penalty):
    """Return the mean loss plus the penalty of a fitted model of one target."""
    w, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    return LOSSES[loss].value(X @ w + b, y).mean() + penalty(w, len(y))


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("data", range(3))
def test_optimum_equals_scikit_learn(pair, data):
    ours, theirs, penalty = PAIRS[pair]
    loss = pair if pair in LOSSES else "squared"
    X, y = list((CLASSES if pair in LOSSES else NUMBERS).values())[data]
    found, want = (
        objective(clone(model).fit(X, y), X, y, loss, penalty) for model in (ours, theirs)
    )
    assert found == pytest.approx(want, rel=1e-3)


def test_uncentered_data_need_no_scaling():
    X, y = load_breast_cancer(return_X_y=True)
    found = LogisticRegression(tol=1e-7, max_iter=5000).fit(X, y)
    want = linear_model.LogisticRegression(solver="newton-cholesky").fit(X, y)
    penalty = PAIRS["logistic"][2]
    both = [objective(m, X, 2.0 * y - 1, "logistic", penalty) for m in (found, want)]
    assert both[0] == pytest.approx(both[1], rel=1e-3)


def test_constant_columns_have_zero_weight():
    X = np.column_stack([np.full(50, 0.1), np.linspace(-1, 1, 50)])
    found = LogisticRegression(C=np.inf, max_iter=20).fit(X, np.arange(50) % 7 > 3)
    assert found.coef_[0, 0] == 0
    assert 0 < abs(found.coef_[0, 1]) < 10


@pytest.mark.parametrize(
    ("model", "score"),
    [
        (LogisticRegression(solver="sgd", batch_size=10), 0.95),
        (LinearSVC(loss="hinge", batch_size=10), 0.95),
        (LogisticRegression(early_stopping=True, batch_size=10), 0.9),
        (LogisticRegression(method=sparcml.Dense(), learning_rate=Constant(0.5)), 0.9),
        (
            LogisticRegression(
                method=sparcml.Compressed(sparsify=sparcml.TopK(ratio=0.1)),
                learning_rate=Constant(0.5),
            ),
            0.9,
        ),
    ],
    ids=["logistic", "hinge", "early", "dense", "topk"],
)
def test_sgd_reaches_a_good_score(model, score):
    X, y = CLASSES["breast cancer"]
    model = clone(model).set_params(random_state=0, max_iter=100, tol=1e-2)
    assert model.fit(X, y).score(X, y) > score
    assert 1 < model.n_iter_ < 100


def test_several_classes_are_one_vs_rest():
    X, y = load_digits(return_X_y=True)
    X, names = X[:500] / 16, np.array([f"digit {label}" for label in y[:500]])
    model = LogisticRegression(tol=1e-8).fit(X, names)
    assert model.classes_.tolist() == sorted(set(names))
    assert model.coef_.shape == (10, 64)
    third = LogisticRegression(tol=1e-8).fit(X, names == "digit 3")
    np.testing.assert_allclose(model.coef_[3], third.coef_[0], atol=1e-2)
    chances = model.predict_proba(X)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[chances.argmax(axis=1)], model.predict(X))
    assert model.score(X, names) > 0.97


def test_probabilities_do_not_overflow():
    model = LogisticRegression().fit([[-1.0], [1.0]], [0, 1])
    far = np.array([[-1e5], [1e5]])
    assert np.isfinite(model.predict_log_proba(far)).all()
    np.testing.assert_array_equal(model.predict_proba(far), np.eye(2))


def test_partial_fits_equal_a_fit():
    X, y = CLASSES["sparse"]
    settings: dict[str, Any] = {
        "C": np.inf,  # the penalty counts the rows of every call
        "solver": "sgd",
        "learning_rate": Constant(0.5),
        "random_state": 3,
        "tol": 0.0,
    }
    whole = LogisticRegression(max_iter=4, n_iter_no_change=9, **settings)
    with pytest.warns(ConvergenceWarning, match="not converged after 4 epochs"):
        whole.fit(X, y)
    parts = LogisticRegression(**settings)
    for _ in range(4):
        parts.partial_fit(X, y, classes=[-1, 1])
    np.testing.assert_array_equal(parts.coef_, whole.coef_)
    resumed = pickle.loads(pickle.dumps(whole)).partial_fit(X, y)
    parts.partial_fit(X, y)
    np.testing.assert_allclose(resumed.coef_, parts.coef_, rtol=1e-12)
    assert resumed.n_iter_ == parts.n_iter_ == 5


@pytest.mark.parametrize("density", [0.02, 1.0])
def test_partial_fit_does_not_depend_on_the_size_of_chunks(density):
    X, y = signs(*synthetic(3000, 100, density))
    losses = []
    for chunk in (30, 300, 3000):
        model = LogisticRegression(random_state=0, batch_size=30)
        for start in range(0, len(y), chunk):
            part = slice(start, start + chunk)
            model.partial_fit(X[part], y[part], classes=[-1, 1])
        losses.append(log_loss(y, model.predict_proba(X)))
    assert max(losses) < 1.1 * min(losses)


def test_fit_then_partial_fit_keeps_the_penalty():
    X, y = CLASSES["sparse"]
    model = LogisticRegression(C=0.1).fit(X, y)
    before = np.linalg.norm(model.coef_)
    for start in range(0, 300, 10):
        model.partial_fit(X[start : start + 10], y[start : start + 10])
    assert np.linalg.norm(model.coef_) > 0.9 * before


def test_sgd_ends_near_the_optimum_of_sparse_text_like_rows():
    X, y = CLASSES["sparse"]
    counts = X * 10
    counts[0] *= 50  # one long row must not make all learning rates small
    penalty = PAIRS["logistic"][2]
    optimum = LogisticRegression().fit(counts, y)
    best = objective(optimum, counts, y, "logistic", penalty)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = LogisticRegression(solver="sgd", random_state=0).fit(counts, y)
    assert model.n_iter_ < 100
    assert objective(model, counts, y, "logistic", penalty) < 1.2 * best
    with pytest.warns(ConvergenceWarning, match="not converged after 3 epochs"):
        LogisticRegression(solver="sgd", max_iter=3).fit(counts, y)


def test_sgd_warns_of_columns_of_different_magnitudes():
    X, y = load_breast_cancer(return_X_y=True)
    expected = r"after \d+ epochs: the columns' magnitudes differ by a factor of 1.4e\+05"
    with pytest.warns(ConvergenceWarning, match=f"{expected}; scale .* solver='scd'"):
        LogisticRegression(solver="sgd", random_state=0, max_iter=20, tol=0.1).fit(X, y)
    with pytest.warns(ConvergenceWarning, match=f"{expected}; scale the features$"):
        LinearSVC(loss="hinge", random_state=0, max_iter=20, tol=0.1).fit(X, y)
    rare = np.zeros((len(y), 2))
    rare[:2, 0], rare[::2, 1] = 1.0, 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        for alike in (scale(X), scale(rare), load_digits().data[: len(y)]):
            LogisticRegression(solver="sgd", random_state=0, tol=0.1).fit(alike, y)
        LogisticRegression(solver="scd", tol=0.1).fit(X, y)


def test_early_stopping_returns_the_best_model():
    """Learning rates grow until each epoch is worse than the one before."""
    X, y = CLASSES["breast cancer"]
    settings: dict[str, Any] = {
        "early_stopping": True,
        "C": np.inf,
        "learning_rate": ExponentialDecay(0.02, 20.0),
        "random_state": 1,
    }
    found = LogisticRegression(n_iter_no_change=3, max_iter=9, **settings).fit(X, y)
    best = found.n_iter_ - 3
    assert 0 < best < 6
    with pytest.warns(ConvergenceWarning):
        short = LogisticRegression(n_iter_no_change=3, max_iter=best, **settings).fit(X, y)
    np.testing.assert_array_equal(found.coef_, short.coef_)
    np.testing.assert_array_equal(found.intercept_, short.intercept_)


def test_sparsify_does_not_change_predictions():
    X, y = NUMBERS["sparse"]
    model = Lasso(alpha=0.01).fit(X, y)
    want, dense = model.predict(X), model.coef_
    assert 0 < np.count_nonzero(dense) < dense.size / 2
    assert model.sparsify().coef_.nnz == np.count_nonzero(dense)
    np.testing.assert_allclose(model.predict(X), want)
    np.testing.assert_array_equal(model.densify().coef_, dense)


def test_several_targets_are_fitted_separately():
    X, y = NUMBERS["sparse"]
    both = Ridge(random_state=0).fit(X, np.column_stack([y, -2 * y]))
    one = Ridge(random_state=0).fit(X, y)
    assert both.coef_.shape == (2, X.shape[1])
    np.testing.assert_allclose(both.coef_[0], one.coef_)
    np.testing.assert_allclose(both.predict(X)[:, 0], one.predict(X))


def test_grid_search():
    X, y = CLASSES["breast cancer"]
    search = GridSearchCV(LogisticRegression(max_iter=2000), {"C": [1e-4, 0.1]}, cv=3)
    assert search.fit(X, y).best_params_ == {"C": 0.1}


def test_sgd_preserves_float32():
    X, y = CLASSES["sparse"]
    model = LogisticRegression(solver="sgd", tol=1e-2).fit(X.astype(np.float32), y)
    assert model.coef_.dtype == np.float32


ROWS, LABELS = np.eye(4), np.array([0, 1, 0, 1])
BEYOND = sparse.csr_matrix(ROWS)
BEYOND.indices[3] = 7


@pytest.mark.parametrize(
    ("model", "X", "y", "says"),
    [
        (LogisticRegression(), ROWS, np.ones(4), "two classes or more, got one class: 1"),
        (LogisticRegression(), np.full((4, 4), np.nan), LABELS, "NaN"),
        (LogisticRegression(), BEYOND, LABELS, "columns must be 0 to 3, .* got 0 to 7"),
        (LogisticRegression(C=0), ROWS, LABELS, "C must be > 0, got 0"),
        (LogisticRegression(l1_ratio=2), ROWS, LABELS, r"l1_ratio must be in \[0, 1\]"),
        (LogisticRegression(solver="lbfgs"), ROWS, LABELS, "auto, scd, sgd, got 'lbfgs'"),
        (LinearSVC(loss="log"), ROWS, LABELS, "squared_hinge or hinge, got 'log'"),
        (
            LinearSVC(loss="hinge", solver="scd"),
            ROWS,
            LABELS,
            "must be 'sgd' with the loss hinge",
        ),
        (Ridge(solver="scd", early_stopping=True), ROWS, LABELS, "with early_stopping"),
        (Ridge(max_iter=0), ROWS, LABELS, "max_iter must be >= 1, got 0"),
        (Ridge(alpha=-1.0), ROWS, LABELS, "alpha must be >= 0"),
        (Ridge(early_stopping=True), ROWS, LABELS, "0.1 of 4 rows is 0 rows"),
        (Ridge(validation_fraction=1.0), ROWS, LABELS, "must be < 1, got 1.0"),
        (
            LinearSVC(class_weight={5: 2.0}),
            ROWS,
            LABELS,
            r"existing classes, got \[5\]",
        ),
        (LinearSVC(class_weight="even"), ROWS, LABELS, "must be a dict, 'balanced'"),
    ],
)
def test_invalid_arguments(model, X, y, says):
    with pytest.raises(ValueError, match=says):
        model.fit(X, y)


def test_partial_fit_refuses_other_shapes():
    model = LogisticRegression()
    with pytest.raises(
        ValueError, match="two or more items in the first partial_fit, got None"
    ):
        model.partial_fit(ROWS, LABELS)
    model.partial_fit(ROWS, LABELS, classes=[0, 1])
    with pytest.raises(
        DataError, match=r"labels must be among the classes \[0, 1\], got \[2\]"
    ):
        model.partial_fit(ROWS, LABELS + 1)
    with pytest.raises(ValueError, match=r"classes must stay \[0, 1\]"):
        model.partial_fit(ROWS, LABELS, classes=[0, 1, 2])
    with pytest.raises(
        ValueError, match="5 features, but LogisticRegression is expecting 4"
    ):
        model.predict(np.eye(5))
    with pytest.raises(DataError, match="columns must be 0 to 3"):
        model.predict(BEYOND)
    with pytest.raises(ValueError, match="must have 1 targets, as the model, got 2"):
        Ridge().partial_fit(ROWS, LABELS).partial_fit(ROWS, np.eye(4)[:, :2])


def test_import_star_has_every_public_name():
    names: dict[str, Any] = {}
    exec("from sparcml.linear import *", names)
    assert names["LogisticRegression"] is LogisticRegression
    imports = {"Any", "TYPE_CHECKING", "find_spec"}
    public = {n for n in vars(sparcml.linear) if n[0].isalpha()} - imports
    public -= {n for n in public if isinstance(getattr(sparcml.linear, n), ModuleType)}
    estimators = {"Lasso", "LinearSVC", "LogisticRegression", "Ridge"}
    assert set(sparcml.linear.__all__) == public | estimators


def test_without_scikit_learn_only_estimators_are_missing():
    code = """
import sys
from typing import Any
sys.modules["sklearn"] = None
from sparcml.linear import *
import sparcml.linear
sparcml.linear.SGD
sparcml.linear.Ridge
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (
        "Ridge needs scikit-learn; install it with: pip install '.[linear]'" in done.stderr
    )
