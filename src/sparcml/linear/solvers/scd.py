"""Stochastic coordinate descent (SCD) in random blocks, columns partitioned over the ranks.

In each round every rank makes steps on some of its coordinates. All ranks hold the margins w.x + b
of all rows; the changes of the margins are sparse and exchanged by an allgather. A rank learns of
the others' changes after the round only. To make up for that, it counts its own changes once for
every rank (see `cpp/linear/models/coordinates.h`), so that the objective never grows.

Reference: Wright: Coordinate Descent Algorithms, Mathematical Programming 151, 2015.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ...communicator.collective_errors import allgather_numbers, require_same
from ...validation import check_integer, check_real
from .. import loops
from ..data.partition import ColumnPartition, check_partition, partition_columns
from .objective import Penalty, check_rows, loss_of
from .scd_state import SCDState

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator
    from ..data.rows import Rows


SEPARATED = 1e-3  # fraction of the first objective at which classes are separated


@dataclass(frozen=True)
class SCD:
    """Minimise mean loss + penalty, one block of coordinates at a time.

    SCD computes in float64 and ends close to the optimum. SGD reaches a good model sooner.

    Args:
        loss: logistic, squared_hinge (labels -1 and 1) or squared.
        penalty: Penalty on the weights.
        epochs: Largest number of epochs over all coordinates.
        block_size: Coordinates per rank and round.
        intercept: Whether to fit an intercept.
        seed: Seed of the order of coordinates in each epoch.
        tol: Training has converged when an epoch reduces the objective by less than this
            fraction.
    """

    loss: str = "logistic"
    penalty: Penalty = field(default_factory=Penalty)
    epochs: int = 1000
    block_size: int = 100
    intercept: bool = True
    seed: int = 0
    tol: float = 1e-8

    def __post_init__(self) -> None:
        if loss_of(self.loss).curvature is None:
            raise ValueError(
                f"SCD: loss must be smooth, got {self.loss}, whose kinks stop coordinate "
                f"descent; use squared_hinge, or SGD"
            )
        for name in ("epochs", "block_size"):
            check_integer(self, name)
            if getattr(self, name) < 1:
                raise ValueError(f"SCD: {name} must be >= 1, got {getattr(self, name)}")
        check_integer(self, "seed")
        check_real(self, "tol")
        if self.seed < 0 or np.isnan(self.tol):
            raise ValueError(
                f"SCD: seed must be >= 0 and tol a number, got {self.seed} and {self.tol}"
            )

    def run(
        self,
        comm: Communicator,
        rows: Rows,
        state: SCDState | None = None,
        *,
        watch: Callable[[SCDState], None] | None = None,
        partition: ColumnPartition | None = None,
    ) -> SCDState:
        """Train until convergence or `epochs`. Collective.

        Args:
            comm: The ranks.
            rows: This rank's rows; all ranks' rows are rows 0 to total.
            state: State to resume, of the same number of ranks; it is changed.
            watch: Callback on all ranks, after each epoch.
            partition: The result of `partition_columns` for these rows, with the labels to
                fit: one-vs-rest models share the columns.
        """
        require_same("SCD", comm, vars(self))
        run = SCDRun(self, comm, rows, state, partition)
        while run.state.epoch < self.epochs and not self.converged(run.state):
            run.epoch()
            if watch is not None:
                watch(run.state)
        return run.state

    def converged(self, state: SCDState) -> bool:
        """Return whether the last epoch reduced the objective by less than `tol`.

        Without a penalty, the weights of separable classes grow for ever. Training ends when
        the loss is a small fraction of that of zero weights.
        """
        if not state.epoch:
            return False
        is_separated = state.objectives[-1] <= SEPARATED * state.objectives[0]
        if is_separated and loss_of(self.loss).signs and self.penalty == Penalty():
            return True
        before, after = state.objectives[-2:]
        return before - after <= self.tol * abs(after)


class SCDRun:
    """One call of `SCD.run`: what its rounds have in common. All methods are collective."""

    def __init__(
        self,
        solver: SCD,
        comm: Communicator,
        rows: Rows,
        state: SCDState | None,
        partition: ColumnPartition | None,
    ) -> None:
        self.solver, self.comm = solver, comm
        self.loss = loss_of(solver.loss)
        check_rows(rows, self.loss)
        check_partition(comm, rows)
        partition = partition or partition_columns(comm, rows)
        self.columns = partition.columns
        self.objective = loops.SCDObjective(
            partition.labels,
            partition.weights,
            self.loss.code,
            solver.penalty.l1,
            solver.penalty.l2,
            comm.size,
        )
        count, total = self.columns.indptr.size - 1, partition.labels.size
        self.state = state or SCDState.initial(count, total)
        if self.state.coordinates.size != count or self.state.margins.size != total:
            raise ValueError(
                f"SCD: the state must have {count} columns of {total} rows on this rank, got "
                f"{self.state.coordinates.size} of {self.state.margins.size}"
            )
        self.active = np.flatnonzero(np.diff(self.columns.indptr))
        counts = allgather_numbers(comm, self.active.size, int(self.columns.indptr[-1]))
        columns, entries = counts.max(axis=0).astype(int)
        self.rounds = -(-int(columns) // solver.block_size)
        # A step of the intercept reads all rows; in these rounds it costs no more than others.
        self.intercept_every = max(1, total * self.rounds // max(int(entries), 1))
        self.steps = loops.SCDSteps(
            self.columns,
            self.objective,
            self.state.coordinates,
            self.state.trust_radius,
            self.state.margins,
        )
        if not self.state.objectives:
            self.state.objectives.append(self._evaluate())

    def epoch(self) -> None:
        """Make a step on each coordinate, in random order."""
        state, block_size = self.state, self.solver.block_size
        key = [self.solver.seed, state.epoch, self.comm.rank]
        order = np.random.default_rng(key).permutation(self.active)
        # A single rank exchanges nothing, so it needs rounds for the intercept only.
        every = self.intercept_every
        first = every if self.comm.size == 1 else 1
        made = 0
        for end in (*range(first, self.rounds, every), self.rounds):
            self._steps(order[made * block_size : end * block_size], end - made)
            made = end
            if self.solver.intercept:
                self.steps.step_intercept(state.bias)
        state.objectives.append(self._evaluate())

    def _steps(self, chosen: NDArray[np.int64], rounds: int) -> None:
        """Make steps on some coordinates; several ranks exchange their changes in rounds.

        The last rounds of a rank may have fewer coordinates, or none.
        """
        if self.comm.size == 1:
            self.steps.run(chosen)
            return
        block_size = self.solver.block_size
        for start in range(0, rounds * block_size, block_size):
            changes = self.steps.changes(chosen[start : start + block_size])
            self.comm._allgather_add(changes, self.state.margins)

    def _evaluate(self) -> float:
        """Return the objective."""
        losses = self.loss.value(self.state.margins, self.objective.labels)
        if self.objective.weights.size:
            losses *= self.objective.weights
        own = self.solver.penalty.value(self.state.coordinates)
        penalty = self.comm.allreduce(np.array([own], np.float64))[0]
        return float(losses.mean() + penalty) if losses.size else float(penalty)
