"""`partial_fit`: one epoch of SGD over the rows of a call, at a cost of their entries."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse

from ..solvers.learning_rate import Constant, RowNorms, initial_rate
from ..solvers.sgd_state import INTERCEPT
from .inputs import common_seed, number_rows
from .sgd_settings import BATCH_SIZE, adapts, build_sgd

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator
    from ..data.rows import Rows
    from ..solvers.learning_rate import LearningRate
    from ..solvers.sgd import SGD
    from ..solvers.sgd_state import SGDState
    from .base import LinearModel

    Doubles = NDArray[np.float64]


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
        is_adaptive = states[0].model.adaptive
    else:  # AdaGrad's first steps are long, which is no good for a model that is fitted
        is_adaptive = not hasattr(model, "intercept_") and adapts(model, seen, X.shape[1])
    rate: LearningRate | None = None
    if not is_adaptive:
        batch_size = model.batch_size or BATCH_SIZE
        rate = Constant(initial_rate(model._loss(), seen, batch_size))
    seed = common_seed(comm, model.random_state)
    sgd = build_sgd(model, seen, rate, seed)
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
        sgd.run_epoch(comm, replace(rows, labels=y), state, flush=False)
    model._seen = seen
    return states


def _state_of(model: LinearModel, sgd: SGD, rows: Rows, target: int) -> SGDState:
    """Return a state with the weights of the model, or zeros."""
    state = sgd.init(rows)
    if hasattr(model, "intercept_"):
        coef = model.coef_[[target]] if model.coef_.ndim == 2 else model.coef_
        state.model.coefficients[:] = np.ravel(coef.toarray() if issparse(coef) else coef)
        state.model.numbers[INTERCEPT] = np.atleast_1d(model.intercept_)[target]
        state.epoch = model.n_iter_
        state.seen = model.n_iter_ * rows.total
    return state
