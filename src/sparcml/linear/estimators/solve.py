"""From rows to weights, by one solver or the other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..solvers.learning_rate import InverseDecay
from ..solvers.lengths import squared_row_norms
from ..solvers.objective import loss_of
from ..training.early_stopping import BestModel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator
    from ..data.partition import Share
    from ..data.rows import Rows
    from ..solvers.learning_rate import LearningRate
    from ..solvers.penalty import Penalty
    from ..solvers.scd import SCD
    from ..solvers.sgd import SGD
    from ..solvers.sgd_state import SGDState


@dataclass(frozen=True, eq=False)
class Solution:
    """What a solver found.

    Attributes:
        weights: One a feature.
        intercept: Zero if there is none.
        passes: Over the rows (SGD) or the coordinates (SCD).
        settled: Whether it ended before it had to.
    """

    weights: NDArray[Any]
    intercept: float
    passes: int
    settled: bool


def descend(solver: SCD, comm: Communicator, rows: Rows, share: Share) -> Solution:
    """By coordinate descent, in columns that were shared with any labels."""
    labels = np.concatenate(comm.allgather(rows.labels))
    state = solver.run(comm, rows, share=replace(share, labels=labels))
    weights = state.weights(comm, rows.features)
    return Solution(weights, state.intercept, state.epoch, solver.stands(state))


def step(
    solver: SGD, comm: Communicator, rows: Rows, held_out: Rows | None = None
) -> Solution:
    """By stochastic steps, until passes no longer make the loss smaller.

    That is the loss on held-out rows, or else on the rows of a pass, each before its step. With
    held-out rows the solution is the best on them, which takes memory for one more model.
    """
    state = solver.init(rows)
    settled, best = False, BestModel()
    while state.epoch < solver.epochs and not settled:
        one_more(solver, comm, rows, state, held_out)
        losses = state.losses if held_out is None else state.held_out
        settled = stalled(losses, solver.patience, solver.tol)
        if held_out is not None:
            best.update(state)
    if best.weights is not None:
        return Solution(best.weights, best.intercept, state.epoch, settled)
    return Solution(state.weights, state.intercept, state.epoch, settled)


def one_more(
    solver: SGD,
    comm: Communicator,
    rows: Rows,
    state: SGDState,
    held_out: Rows | None = None,
) -> None:
    """One pass, whatever the solver thinks of going on."""
    state.stale = 0
    replace(solver, epochs=state.epoch + 1).run(comm, rows, state, held_out=held_out)


def stalled(losses: list[float], patience: int, tol: float) -> bool:
    """Whether the last losses are not smaller, by that part, than the best before them."""
    if len(losses) <= patience:
        return False
    best = min(losses[:-patience])
    return min(losses[-patience:]) > best * (1.0 - tol)


def default_learning_rate(
    comm: Communicator, rows: Rows, loss: str, penalty: Penalty, batch: int
) -> LearningRate:
    """Rates that suit the size of the rows and the strength of the penalty.

    The first is the inverse of how curved the loss of a batch may be: the curvature by the
    margin times the rows' squared lengths, on average and, for a batch may hold the longest
    row, that one's share. Then 1 / (l2 * steps), or without l2 the inverse root of passes.

    Reference: Bottou: Stochastic Gradient Descent Tricks, 2012; Gower et al.: SGD: General
    Analysis and Improved Rates, 2019 (expected smoothness).
    """
    ones = np.ones(len(rows)) if rows.weights is None else rows.weights
    lengths = squared_row_norms(rows) + ones  # a 1 in each row for the intercept
    total = comm.allreduce(np.array([lengths.sum()]))[0]
    longest = comm.allreduce(np.array([lengths.max(initial=0.0)]), op="max")[0]
    curvature = loss_of(loss).curvature or 1.0
    rate = 1.0 / (curvature * (total / rows.total + longest / batch))
    if penalty.l2:
        return InverseDecay(rate, decay=rate * penalty.l2 * max(1.0, rows.total / batch))
    return InverseDecay(rate, power=0.5)
