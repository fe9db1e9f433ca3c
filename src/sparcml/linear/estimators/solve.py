"""From an estimator's rows and settings to weights, by SGD or SCD."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.partition import allgather_rows, partition_columns
from ..solvers.early_stopping import no_improvement
from ..solvers.objective import loss_of
from ..solvers.scd import SCD
from ..training.dataset import Dataset
from ..training.loop import run_epochs
from ..training.run import TrainingRun
from .inputs import (
    center,
    choose_solver,
    column_spread,
    common_seed,
    number_rows,
    split_rows,
)
from .sgd_settings import sgd_of_fit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator
    from ..solvers.sgd import SGD
    from .base import LinearModel

    Doubles = NDArray[np.float64]

SCD_TOL = 1e-6
FLOOR = 0.1  # fraction of the loss of zero weights below which SGD's tol is absolute


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
    floor = FLOOR if model.tol is None else 0.0
    if not model.early_stopping:
        rows, mass = number_rows(comm, X, weights)
        sgd = sgd_of_fit(model, comm, rows, mass, seed)
        for y in targets:
            data = Dataset(replace(rows, labels=y))
            yield TrainingRun(comm, data, sgd, lambda s: _stops(sgd, s.losses, floor))
        return
    mask = split_rows(comm, X.shape[0], model.validation_fraction, seed)
    (rows, mass), (validation, _) = (
        number_rows(comm, X[part], None if weights is None else weights[part])
        for part in (~mask, mask)
    )
    sgd = sgd_of_fit(model, comm, rows, mass, seed)
    for y in targets:
        train = replace(rows, labels=y[~mask])
        data = Dataset(train, replace(validation, labels=y[mask]))
        yield TrainingRun(
            comm, data, sgd, lambda s: _stops(sgd, s.validation_losses, floor)
        )


def _stops(sgd: SGD, losses: list[float], floor: float) -> bool:
    """Return whether SGD has converged.

    The loss of separable classes decreases by the same fraction in every epoch, for ever:
    with the default `tol`, there is a `floor`, a fraction of the loss of zero weights.
    """
    loss = loss_of(sgd.loss)
    zero = float(loss.value(np.zeros(1), np.ones(1))[0]) if loss.signs else 0.0
    return no_improvement(losses, sgd.patience, sgd.tol, floor * zero)
