"""From an estimator's rows and settings to weights, by SGD or SCD."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse

from ..data.partition import allgather_rows, partition_columns
from ..solvers.early_stopping import no_improvement
from ..solvers.learning_rate import (
    Constant,
    RowNorms,
    adaptive_rate,
    default_schedule,
    initial_rate,
)
from ..solvers.objective import loss_of
from ..solvers.scd import SCD
from ..solvers.sgd import SGD
from ..solvers.sgd_state import INTERCEPT
from ..training.dataset import Dataset
from ..training.loop import run_epochs
from ..training.run import TrainingRun
from .inputs import (
    SPARSE,
    center,
    choose_solver,
    column_spread,
    common_seed,
    number_rows,
    split_rows,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator
    from ..data.rows import Rows
    from ..solvers.learning_rate import LearningRate
    from ..solvers.sgd_state import SGDState
    from .base import LinearModel

    Doubles = NDArray[np.float64]

SCD_TOL, SGD_TOL, ADAPTIVE_TOL = 1e-6, 1e-3, 1e-2  # AdaGrad is close to the optimum sooner
ADAPTIVE = 1e-6  # below most squared gradients, so that rare features take long steps


@dataclass(frozen=True, eq=False)
class Solution:
    """The result of a solver for one target.

    Attributes:
        weights: One per feature.
        intercept: Zero if none is fitted.
        epochs: Epochs over the rows (SGD) or the coordinates (SCD).
        converged: Whether the solver stopped by itself.
        spread: With SGD, the ratio of the columns' magnitudes, which slows it down.
    """

    weights: NDArray[Any]
    intercept: float
    epochs: int
    converged: bool
    spread: float


def solve(
    model: LinearModel,
    comm: Communicator,
    X: Any,
    targets: Doubles,
    weights: Doubles | None,
) -> list[Solution]:
    """Train one model per row of targets from the beginning. Collective."""
    seed = common_seed(comm, model.random_state)
    means = None
    if model.fit_intercept:
        X, means = center(comm, X, weights)
    by_scd = choose_solver(model, model._loss()) == "scd"
    runs = _scd_runs if by_scd else _sgd_runs
    spread = 1.0 if by_scd else column_spread(comm, X)
    solutions = []
    for run in runs(model, comm, X, targets, weights, seed):
        run_epochs(run)
        coefficients, intercept = run.solution(0)
        if means is not None:
            intercept -= float(means @ coefficients)
        state = run.states[0]
        stopped = run.stops(state)
        solutions.append(Solution(coefficients, intercept, state.epoch, stopped, spread))
    return solutions


def _scd_runs(
    model: LinearModel,
    comm: Communicator,
    X: Any,
    targets: Doubles,
    weights: Doubles | None,
    seed: int,
) -> Iterator[TrainingRun]:
    rows, mass = number_rows(comm, X, weights)
    scd = SCD(
        model._loss(),
        model._penalty(mass),
        epochs=model.max_iter,
        intercept=model.fit_intercept,
        seed=seed,
        tol=SCD_TOL if model.tol is None else model.tol,
    )
    partition = partition_columns(comm, rows)  # shared by all targets
    for y in targets:
        labelled = replace(partition, labels=allgather_rows(comm, y))
        data = Dataset(replace(rows, labels=y))
        yield TrainingRun(comm, data, scd, scd.converged, partition=labelled)


def _sgd_runs(
    model: LinearModel,
    comm: Communicator,
    X: Any,
    targets: Doubles,
    weights: Doubles | None,
    seed: int,
) -> Iterator[TrainingRun]:
    if not model.early_stopping:
        rows, mass = number_rows(comm, X, weights)
        sgd = _solver_of_fit(model, comm, rows, mass, seed)
        for y in targets:
            data = Dataset(replace(rows, labels=y))
            yield TrainingRun(comm, data, sgd, lambda s: _stops(sgd, s.losses))
        return
    mask = split_rows(comm, X.shape[0], model.validation_fraction, seed)
    (rows, mass), (validation, _) = (
        number_rows(comm, X[part], None if weights is None else weights[part])
        for part in (~mask, mask)
    )
    sgd = _solver_of_fit(model, comm, rows, mass, seed)
    for y in targets:
        train = replace(rows, labels=y[~mask])
        data = Dataset(train, replace(validation, labels=y[mask]))
        yield TrainingRun(comm, data, sgd, lambda s: _stops(sgd, s.validation_losses))


def _stops(sgd: SGD, losses: list[float]) -> bool:
    return no_improvement(losses, sgd.patience, sgd.tol)


def _solver_of_fit(
    model: LinearModel, comm: Communicator, rows: Rows, mass: float, seed: int
) -> SGD:
    norms, rate = RowNorms.of(comm, rows, mass), None
    if not _adapts(model, norms, rows.features):
        penalty = model._penalty(mass)
        rate = default_schedule(norms, model._loss(), penalty, model.batch_size)
    return _build_sgd(model, norms, rate, seed)


def _adapts(model: LinearModel, norms: RowNorms, features: int) -> bool:
    """Return whether each weight has its own learning rate: for classes and sparse rows."""
    return (
        model.learning_rate is None
        and model.method is None
        and loss_of(model._loss()).signs
        and norms.nnz <= SPARSE * norms.rows * features
    )


def _build_sgd(
    model: LinearModel,
    norms: RowNorms,
    rate: LearningRate | None,
    seed: int,
) -> SGD:
    """Return the solver; without a learning rate, it is AdaGrad."""
    adapts = model.learning_rate is None and rate is None
    default_tol = ADAPTIVE_TOL if adapts else SGD_TOL
    return SGD(
        model._loss(),
        model._penalty(norms.mass),
        model.learning_rate or rate or Constant(adaptive_rate(norms)),
        adaptive=ADAPTIVE if adapts else None,
        batch_size=model.batch_size,
        epochs=model.max_iter,
        intercept=model.fit_intercept,
        seed=seed,
        method=model.method,
        patience=model.n_iter_no_change,
        tol=default_tol if model.tol is None else model.tol,
    )


def advance(
    model: LinearModel,
    comm: Communicator,
    X: Any,
    targets: Doubles,
    weights: Doubles | None,
    states: list[SGDState],
) -> list[SGDState]:
    """Train each target for one epoch of SGD, from its state or the model. Collective.

    The penalty is that of a fit on all rows so far, and the default learning rate is from
    their norms, so that neither depends on how many rows a call has.
    """
    if states:
        X = X.astype(states[0].model.weights.dtype, copy=False)
    rows, mass = number_rows(comm, X, weights)
    seen = model._seen.plus(RowNorms.of(comm, rows, mass))
    if states:
        adapts = states[0].model.adaptive
    else:  # AdaGrad's first steps are long, which is no good for a model that is fitted
        adapts = not hasattr(model, "coef_") and _adapts(model, seen, X.shape[1])
    rate: LearningRate | None = None
    if not adapts:
        rate = Constant(initial_rate(model._loss(), seen, model.batch_size))
    seed = common_seed(comm, model.random_state)
    sgd = _build_sgd(model, seen, rate, seed)
    for state in states:
        state.set_penalty(sgd.penalty)
    compatible = all(
        state.is_compatible(sgd.penalty, sgd.momentum, sgd.adaptive) for state in states
    )
    if not states or not compatible:  # settings may have changed since
        states = [_state_of(model, sgd, rows, k) for k in range(len(targets))]
    if len(states) != len(targets):
        raise ValueError(
            f"{type(model).__name__}: y must have {len(states)} targets, as the model, got "
            f"{len(targets)}"
        )
    for state, y in zip(states, targets, strict=True):
        sgd.run_epoch(comm, replace(rows, labels=y), state)
        state.expand()  # the next call has other rows
    model._seen = seen
    return states


def _state_of(model: LinearModel, sgd: SGD, rows: Rows, target: int) -> SGDState:
    """Return a state with the weights of the model, or zeros."""
    state = sgd.init(rows)
    if hasattr(model, "coef_"):
        coef = model.coef_[[target]] if model.coef_.ndim == 2 else model.coef_
        state.model.coefficients[:] = np.ravel(coef.toarray() if issparse(coef) else coef)
        state.model.numbers[INTERCEPT] = np.atleast_1d(model.intercept_)[target]
        state.epoch = model.n_iter_
        state.seen = model.n_iter_ * rows.total
    return state
