"""Random block coordinate descent, the columns divided over the ranks.

In each round every rank makes steps on some of its own coordinates. What they change of the
margins w.x + b, which all ranks keep of all rows, is sparse, and goes to all by an allgather.
A rank knows of the others' changes after the round only; counting its own changes once for
every rank makes up for that (see `cpp/kernels/linear/coordinates.h`), so that the
objective never grows.

Reference: Wright: Coordinate Descent Algorithms, Mathematical Programming 151, 2015.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ... import kernels
from ...kernels import linear as loops
from ...stream import Stream
from ...validation import check_integer, check_real
from ..data.partition import Share, partition_columns
from ..data.shares import check_partition
from .evaluate import check_rows
from .objective import loss_of
from .penalty import Penalty
from .scd_state import SCDState

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator
    from ..data.rows import Rows


@dataclass(frozen=True)
class SCD:
    """Makes mean loss + penalty small, a block of coordinates at a time.

    It computes in float64 and ends close to the optimum: use it where that is wanted, and
    SGD where a good model soon is.

    Args:
        loss: logistic, squared_hinge (labels -1 and 1) or squared.
        penalty: On large weights.
        epochs: Passes over all coordinates, at most.
        block_size: Coordinates of each rank in a round.
        intercept: Whether there is one.
        seed: Of the order of coordinates, anew in each pass.
        tol: Stop when a pass makes the objective smaller by less than this part.
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
                f"SCD: the loss {self.loss} has a kink, where coordinates get stuck: take "
                f"squared_hinge, or SGD"
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
        share: Share | None = None,
    ) -> SCDState:
        """Go on until the objective stands still, or all passes are made; a collective call.

        Args:
            comm: The ranks.
            rows: This rank's; all ranks' together are rows 0 to total.
            state: Where to go on, of the same number of ranks; it is changed.
            watch: Called after each pass, on all ranks.
            share: Of `partition_columns` for these rows; with other labels, for many classes.
        """
        return _Run(self, comm, rows, state, share).go(watch)

    def stands(self, state: SCDState) -> bool:
        """Whether the last pass has brought so little that there is no need for another."""
        if not state.epoch:
            return False
        before, after = state.objectives[-2:]
        return before - after <= self.tol * abs(after)


class _Run:
    """One call of `SCD.run`, with what is the same in all its rounds."""

    def __init__(
        self,
        solver: SCD,
        comm: Communicator,
        rows: Rows,
        state: SCDState | None,
        share: Share | None,
    ) -> None:
        self.solver, self.comm = solver, comm
        self.loss = loss_of(solver.loss)
        check_rows(rows, self.loss)
        check_partition(comm, rows)
        share = share or partition_columns(comm, rows)
        self.columns = share.columns
        self.about = loops.SCDObjective(
            share.labels,
            share.weights,
            self.loss.code,
            solver.penalty.l1,
            solver.penalty.l2,
            comm.size,
        )
        count, total = self.columns.indptr.size - 1, share.labels.size
        self.state = state or SCDState(
            np.zeros(count), np.ones(count), np.zeros(total), np.array([0.0, 1.0])
        )
        if self.state.coordinates.size != count or self.state.margins.size != total:
            raise ValueError(
                f"SCD: the state has {self.state.coordinates.size} columns of "
                f"{self.state.margins.size} rows, this rank {count} of {total}"
            )
        self.used = np.flatnonzero(np.diff(self.columns.indptr))
        entries = int(self.columns.indptr[-1])
        mine = np.array([self.used.size, entries], np.float64)
        most, entries = np.max(comm.allgather(mine), axis=0).astype(int)
        self.rounds = -(-int(most) // solver.block_size)
        # The intercept's step goes through all rows: rare enough not to cost more than others.
        self.shift_every = max(1, total * self.rounds // max(int(entries), 1))
        self.moved = np.zeros(total) if comm.size > 1 else None

    def go(self, watch: Callable[[SCDState], None] | None) -> SCDState:
        state, solver = self.state, self.solver
        if not state.objectives:
            state.objectives.append(self._objective())
        while state.epoch < solver.epochs and not solver.stands(state):
            key = [solver.seed, state.epoch, self.comm.rank]
            self._pass(np.random.default_rng(key).permutation(self.used))
            state.objectives.append(self._objective())
            if watch is not None:
                watch(state)
        return state

    def _pass(self, order: NDArray[np.int64]) -> None:
        """All coordinates once. One rank needs no rounds but for the intercept."""
        alone = self.moved is None
        rounds = self.shift_every if alone else 1
        each = rounds * self.solver.block_size
        for turn in range(0, self.rounds, rounds):
            start = turn * self.solver.block_size
            self._round(order[start : start + each])
            last = turn + rounds >= self.rounds
            if self.solver.intercept and (turn % self.shift_every == 0 or last):
                loops.intercept_step(self.about, self.state.margins, self.state.bias)

    def _round(self, chosen: NDArray[np.int64]) -> None:
        state = self.state
        changes = loops.scd_steps(
            self.columns,
            chosen,
            self.about,
            state.coordinates,
            state.trust,
            state.margins,
            self.moved,
        )
        if self.moved is None:
            return
        total = state.margins.size
        indices, values = loops.combine_columns(self.columns, chosen, changes, total)
        self.moved[indices] = 0.0
        for part in self.comm.allgather(Stream.unchecked(total, indices, values)):
            if part.is_dense:
                state.margins += part.raw_values
            else:
                kernels.scatter("sum", state.margins, *part.pairs())

    def _objective(self) -> float:
        found = self.loss.value(self.state.margins, self.about.labels)
        if self.about.weights.size:
            found *= self.about.weights
        mine = self.solver.penalty.value(self.state.coordinates)
        penalty = self.comm.allreduce(np.array([mine], np.float64))[0]
        return float(found.mean() + penalty) if found.size else float(penalty)
