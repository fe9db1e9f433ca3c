"""The SGD solver of an estimator: its learning rate and batch size, if they are not set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..solvers.learning_rate import (
    Constant,
    RowNorms,
    adaptive_rate,
    default_schedule,
)
from ..solvers.objective import loss_of
from ..solvers.sgd import SGD
from .inputs import SPARSE

if TYPE_CHECKING:
    from ...communicator.communicator import Communicator
    from ..data.rows import Rows
    from ..solvers.learning_rate import LearningRate
    from .base import LinearModel

SGD_TOL, ADAPTIVE_TOL = 1e-3, 1e-2  # AdaGrad is close to the optimum sooner
ADAPTIVE = 1e-6  # below most squared gradients, so that rare features take long steps
BATCH_SIZE = 100
DENSE = 0.25  # density from which rows are dense
MIN_STEPS = 1000  # per epoch of dense rows: with fewer, SGD takes many more epochs


def sgd_of_fit(
    model: LinearModel, comm: Communicator, rows: Rows, mass: float, seed: int
) -> SGD:
    """Return the solver of `fit`, with learning rates from the norms of its rows. Collective."""
    norms = RowNorms.of(comm, rows, mass)
    if adapts(model, norms, rows.features):
        return build_sgd(model, norms, None, seed)
    batch_size = BATCH_SIZE
    is_dense = norms.nnz >= DENSE * norms.rows * rows.features
    if is_dense and not (model.learning_rate or model.method):
        batch_size = min(max(rows.total // MIN_STEPS, 1), BATCH_SIZE)
    batch_size = model.batch_size or batch_size
    rate = default_schedule(norms, model._loss(), model._penalty(mass), batch_size)
    return build_sgd(model, norms, rate, seed, batch_size)


def adapts(model: LinearModel, norms: RowNorms, features: int) -> bool:
    """Return whether each weight has its own learning rate: for classes and sparse rows."""
    return (
        model.learning_rate is None
        and model.method is None
        and loss_of(model._loss()).signs
        and norms.nnz <= SPARSE * norms.rows * features
    )


def build_sgd(
    model: LinearModel,
    norms: RowNorms,
    rate: LearningRate | None,
    seed: int,
    batch_size: int = BATCH_SIZE,
) -> SGD:
    """Return the solver; `rate` and `batch_size` apply if the model has none.

    Without a learning rate, it is AdaGrad.
    """
    is_adaptive = model.learning_rate is None and rate is None
    default_tol = ADAPTIVE_TOL if is_adaptive else SGD_TOL
    return SGD(
        model._loss(),
        model._penalty(norms.mass),
        model.learning_rate or rate or Constant(adaptive_rate(norms)),
        adaptive=ADAPTIVE if is_adaptive else None,
        batch_size=model.batch_size or batch_size,
        epochs=model.max_iter,
        intercept=model.fit_intercept,
        seed=seed,
        method=model.method,
        patience=model.n_iter_no_change,
        tol=default_tol if model.tol is None else model.tol,
    )
