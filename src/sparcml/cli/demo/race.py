"""The same training twice, with sparse and with dense sums, and whether both agree."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcml.linear import LOSSES, SGD
from sparcml.linear.solvers.objective import margins, mean_loss
from sparcml.linear.training.history import EpochRecord, History

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from sparcml import Communicator
    from sparcml.linear import SGDState, SolverProgress
    from sparcml.linear.data.bundled import Split

CLOSE = 1e-4  # of the largest weight: float32 sums in another order, over many steps


@dataclass(frozen=True, eq=False)
class Run:
    """What one kind of communication has led to.

    Attributes:
        communication: sparse or dense.
        history: Of all passes.
        accuracy: The share of held-out rows with the right class, at the end.
        weights: After as many passes as both have made.
        same: Whether these have the same bits on all ranks.
    """

    communication: str
    history: History
    accuracy: float
    weights: NDArray[Any]
    same: bool


def race(
    comm: Communicator,
    data: Split,
    solver: SGD,
    passes: dict[str, int],
    tell: Callable[[str], None],
) -> list[Run]:
    """Train once with each communication, so many passes; a collective call."""
    both = min(passes.values())
    return [
        _run(comm, data, replace(solver, communication=kind), passes[kind], both, tell)
        for kind in passes
    ]


def difference(runs: list[Run]) -> float:
    """Between the runs' weights, as a part of the largest."""
    first, second = (run.weights for run in runs)
    return float(np.abs(first - second).max() / np.abs(first).max())


def _run(
    comm: Communicator,
    data: Split,
    solver: SGD,
    passes: int,
    both: int,
    tell: Callable[[str], None],
) -> Run:
    communication = solver.communication
    state, history = solver.init(data.train), History()
    kept = state.weights
    for each in range(1, passes + 1):
        tell(f"{communication}: pass {each} of {passes}")
        history.epochs.append(_pass(comm, data, replace(solver, epochs=each), state))
        if each == both:
            kept = state.weights.copy()
    marks = comm.allgather(np.array([zlib.crc32(kept.data)], np.float64))
    found = margins(data.validation, state.weights, state.intercept)
    right = float(np.count_nonzero((found > 0) == (data.validation.labels > 0)))
    right = float(comm.allreduce(np.array([right]))[0]) / data.validation.total
    return Run(communication, history, right, kept, len(np.unique(marks)) == 1)


def _pass(comm: Communicator, data: Split, solver: SGD, state: SGDState) -> EpochRecord:
    last: list[SolverProgress] = []
    comm.barrier()
    start = comm.now()
    solver.run(
        comm,
        data.train,
        state,
        watch=lambda progress, _: last.append(progress),
        every=data.train.total,  # at the end only
    )
    seconds = comm.now() - start
    loss = LOSSES[solver.loss]
    held_out = mean_loss(comm, data.validation, loss, state.weights, state.intercept)
    done = replace(
        EpochRecord.of(last[-1]), loss=state.losses[-1], validation_loss=held_out
    )
    return replace(done, seconds=seconds)
