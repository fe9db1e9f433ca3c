"""Tests of SGD on dense rows of many classes against scikit-learn's SGDClassifier."""

import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier

import sparcml
from sparcml.linear import LOSSES, InverseDecay, LinearSVC, LogisticRegression
from sparcml.linear.estimators.inputs import number_rows, single_rank
from sparcml.linear.estimators.sgd_settings import sgd_of_fit
from sparcml.linear.solvers.early_stopping import no_improvement

X, Y = load_digits(return_X_y=True)
X = X / 16
TRAIN, TEST = slice(0, None, 2), slice(1, None, 2)
MODELS = {
    "hinge": LinearSVC(loss="hinge", random_state=0),
    "squared_hinge": LinearSVC(solver="sgd", random_state=0),
    "log_loss": LogisticRegression(solver="sgd", random_state=0),
}


def objective(model, loss):
    """Return the mean over all classes of the training objective."""
    rows, labels = X[TRAIN], Y[TRAIN]
    signs = np.where(labels[:, None] == model.classes_, 1.0, -1.0)
    losses = LOSSES[loss].value(model.decision_function(rows), signs).mean(axis=0)
    return (losses + 0.5 * np.square(model.coef_).sum(axis=1) / len(rows)).mean()


@pytest.mark.parametrize("loss", MODELS)
def test_sgd_stops_as_soon_as_sgd_classifier_at_as_good_a_model(loss):
    rows, labels = X[TRAIN], Y[TRAIN]
    theirs = SGDClassifier(loss, alpha=1 / len(rows), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs.fit(rows, labels)  # the squared hinge may diverge
        warnings.simplefilter("error", ConvergenceWarning)
        ours = clone(MODELS[loss]).fit(rows, labels)
    assert ours.n_iter_ < 100
    assert ours.n_iter_ < 2 * theirs.n_iter_
    name = {"log_loss": "logistic"}.get(loss, loss)
    assert objective(ours, name) < 1.02 * objective(theirs, name)
    scores = [model.score(X[TEST], Y[TEST]) for model in (ours, theirs)]
    assert scores[0] > scores[1] - 0.01


def batch_size(model, rows):
    with single_rank() as comm:
        numbered, mass = number_rows(comm, rows, None)
        return sgd_of_fit(model, comm, numbered, mass, 0).batch_size


@pytest.mark.parametrize(
    ("model", "count", "expected"),
    [
        (LogisticRegression(), 1797, 1),
        (LogisticRegression(), 5000, 5),
        (LogisticRegression(batch_size=20), 5000, 20),
        (LogisticRegression(learning_rate=InverseDecay(1.0)), 5000, 100),
        (LogisticRegression(method=sparcml.Dense()), 5000, 100),
    ],
)
def test_default_batch_size_of_dense_rows(model, count, expected):
    assert batch_size(model, np.resize(X, (count, 64))) == expected
    assert batch_size(model, np.eye(count, 64)) == (model.batch_size or 100)


def test_losses_that_decrease_by_the_same_fraction_converge():
    losses = 0.9 ** np.arange(200)
    stopped = [n for n in range(200) if no_improvement(losses[:n].tolist(), 5, 1e-2, 0.1)]
    assert not no_improvement(losses.tolist(), 5, 1e-2)
    assert 0.9 ** stopped[0] < 0.1 * 1e-2 / 0.1
    assert stopped[0] < 60
