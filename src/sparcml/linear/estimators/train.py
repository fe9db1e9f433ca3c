"""One call of `fit` or `partial_fit`: from an estimator's settings to a solver's work."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse

from ..data.partition import partition_columns
from ..solvers.scd import SCD
from ..solvers.sgd import SGD
from ..solvers.sgd_state import INTERCEPT
from .agree import centred, common_rows, common_seed, held_out
from .settings import solver_of
from .solve import default_learning_rate, descend, one_more, step

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator
    from ..data.rows import Rows
    from ..solvers.sgd_state import SGDState
    from .base import LinearModel
    from .solve import Solution

    Doubles = NDArray[np.float64]


def solve(
    model: LinearModel,
    comm: Communicator,
    X: Any,
    targets: Doubles,
    weights: Doubles | None,
) -> list[Solution]:
    """A solution for each row of targets, from the beginning."""
    seed = common_seed(comm, model.random_state)
    means = None
    if model.fit_intercept:
        X, means = centred(comm, X, weights)
    by = _descended if solver_of(model, model._loss()) == "scd" else _stepped
    found = by(model, comm, X, targets, weights, seed)
    if means is None:
        return found
    return [
        replace(each, intercept=each.intercept - float(means @ each.weights))
        for each in found
    ]


def _descended(
    model: LinearModel,
    comm: Communicator,
    X: Any,
    targets: Doubles,
    weights: Doubles | None,
    seed: int,
) -> list[Solution]:
    """What scd finds for each target."""
    rows, mass = common_rows(comm, X, weights)
    scd = SCD(
        model._loss(),
        model._penalty(mass),
        epochs=model.max_iter,
        intercept=model.fit_intercept,
        seed=seed,
        tol=model.tol,
    )
    share = partition_columns(comm, rows)
    return [descend(scd, comm, replace(rows, labels=y), share) for y in targets]


def _stepped(
    model: LinearModel,
    comm: Communicator,
    X: Any,
    targets: Doubles,
    weights: Doubles | None,
    seed: int,
) -> list[Solution]:
    """What sgd finds for each target, with some rows held out if that is wanted."""
    if not model.early_stopping:
        rows, mass = common_rows(comm, X, weights)
        sgd = _sgd(model, comm, rows, mass, seed)
        return [step(sgd, comm, replace(rows, labels=y)) for y in targets]
    held = held_out(comm, X.shape[0], model.validation_fraction, seed)
    (rows, mass), (test, _) = (
        common_rows(comm, X[which], None if weights is None else weights[which])
        for which in (~held, held)
    )
    sgd = _sgd(model, comm, rows, mass, seed)
    return [
        step(sgd, comm, replace(rows, labels=y[~held]), replace(test, labels=y[held]))
        for y in targets
    ]


def advance(
    model: LinearModel,
    comm: Communicator,
    X: Any,
    targets: Doubles,
    weights: Doubles | None,
    states: list[SGDState],
) -> list[SGDState]:
    """One pass of sgd for each target, from its state; if there are none, from the model."""
    if states:
        X = X.astype(states[0].model.weights.dtype, copy=False)
    rows, mass = common_rows(comm, X, weights)
    sgd = _sgd(model, comm, rows, mass, common_seed(comm, model.random_state))
    fits = all(s.suits(sgd.penalty, sgd.momentum, sgd.adaptive) for s in states)
    if not states or not fits:  # settings may have changed since
        states = [_begun(model, sgd, rows, k) for k in range(len(targets))]
    if len(states) != len(targets):
        raise ValueError(
            f"{type(model).__name__}: the model has {len(states)} targets, y has "
            f"{len(targets)}"
        )
    for state, y in zip(states, targets, strict=True):
        one_more(sgd, comm, replace(rows, labels=y), state)
        state.widen()  # the next rows are others
    return states


def _begun(model: LinearModel, sgd: SGD, rows: Rows, target: int) -> SGDState:
    """A state at what `fit` has found, or at zero."""
    state = sgd.init(rows)
    if hasattr(model, "coef_"):
        found = model.coef_[[target]] if model.coef_.ndim == 2 else model.coef_
        state.model.coefficients[:] = np.ravel(
            found.toarray() if issparse(found) else found
        )
        state.model.numbers[INTERCEPT] = np.atleast_1d(model.intercept_)[target]
        state.epoch = model.n_iter_
        state.seen = model.n_iter_ * rows.total
    return state


def _sgd(model: LinearModel, comm: Communicator, rows: Rows, mass: float, seed: int) -> SGD:
    loss, penalty = model._loss(), model._penalty(mass)
    return SGD(
        loss,
        penalty,
        model.learning_rate
        or default_learning_rate(comm, rows, loss, penalty, model.batch_size),
        batch_size=model.batch_size,
        epochs=model.max_iter,
        intercept=model.fit_intercept,
        seed=seed,
        method=model.method,
        patience=model.n_iter_no_change,
        tol=model.tol,
    )
