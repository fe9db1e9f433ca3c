"""Tests of the optimum against scikit-learn: SCD to 1e-6 of the objective, SGD to 1e-3."""

from functools import cache

import numpy as np
import pytest

import sparcml
from sparcml.linear import LOSSES, SCD, SGD, ExponentialDecay, Penalty, Rows
from sparcml.linear.solvers.objective import objective

from .problems import problem

datasets = pytest.importorskip("sklearn.datasets")
linear_model = pytest.importorskip("sklearn.linear_model")
svm = pytest.importorskip("sklearn.svm")

CASES = {
    "logistic": ("logistic", Penalty(l2=0.02), True),
    "squared hinge": ("squared_hinge", Penalty(l2=0.1), False),
    "ridge": ("squared", Penalty(l2=0.2), True),
    "lasso": ("squared", Penalty(l1=0.05), True),
}
SETS = ("breast cancer", "digits", "sparse")
over_all = pytest.mark.parametrize(
    ("name", "case"), [(name, case) for name in SETS for case in CASES]
)


@cache
def rows_of(name):
    """Standardise dense columns; labels are -1 and 1."""
    if name == "sparse":
        return problem(count=400, features=1000, each=12)
    found = datasets.load_breast_cancer() if name == "breast cancer" else digits()
    kept = found.data[:, found.data.std(0) > 0]
    X = (kept - kept.mean(0)) / kept.std(0)
    return Rows.of(X, 2.0 * (found.target > 0) - 1.0)


def digits():
    """Return threes and eights."""
    found = datasets.load_digits()
    chosen = np.isin(found.target, (3, 8))
    found.data, found.target = found.data[chosen], found.target[chosen] == 8
    return found


@cache
def theirs(name, case):
    """Return the objective of scikit-learn's weights."""
    loss, penalty, intercept = CASES[case]
    rows = rows_of(name)
    strength = 1.0 / (len(rows) * penalty.l2) if penalty.l2 else 0.0
    models = {
        "logistic": lambda: linear_model.LogisticRegression(C=strength, tol=1e-10),
        "squared hinge": lambda: svm.LinearSVC(
            C=strength, dual=False, tol=1e-10, fit_intercept=False, max_iter=10_000
        ),
        "ridge": lambda: linear_model.Ridge(penalty.l2 * len(rows), solver="cholesky"),
        "lasso": lambda: linear_model.Lasso(penalty.l1, tol=1e-12, max_iter=100_000),
    }
    model = models[case]().fit(rows.to_scipy().toarray(), rows.labels)
    bias = float(np.ravel(model.intercept_)[0]) if intercept else 0.0
    world, weights = sparcml.world(), np.ravel(model.coef_)
    return objective(world, rows, LOSSES[loss], penalty, weights, bias)


@over_all
def test_scd_ends_at_the_same_optimum(name, case):
    loss, penalty, intercept = CASES[case]
    scd = SCD(loss, penalty, intercept=intercept, tol=1e-10)
    state = scd.run(sparcml.world(), rows_of(name))
    assert state.objectives[-1] == pytest.approx(theirs(name, case), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("case", ["logistic", "lasso"])
def test_sgd_is_close(name, case):
    loss, penalty, intercept = CASES[case]
    rows = rows_of(name)
    # What the largest row and the loss's curvature allow one row; a batch allows more.
    squares = np.add.reduceat(np.square(rows.values), rows.indptr[:-1]).max()
    largest = 1.0 / ((squares + 1) * (LOSSES[loss].curvature or 1.0))
    steps = ExponentialDecay(30 * largest, 0.985)
    sgd = SGD(loss, penalty, steps, batch_size=32, epochs=600, intercept=intercept)
    state = sgd.run(sparcml.world(), rows)
    found = objective(
        sparcml.world(), rows, LOSSES[loss], penalty, state.weights, state.intercept
    )
    assert found == pytest.approx(theirs(name, case), rel=1e-3)
