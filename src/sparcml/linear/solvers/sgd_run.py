"""The passes of one call of `SGD.run`: batch after batch, with all ranks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...kernels import linear as loops
from ...stream import Stream
from ..data.column_index import ColumnIndex
from ..data.shares import check_partition
from ..data.shuffle import batches
from .evaluate import check_rows, mean_loss, opened
from .gradient_reduction import Exchange
from .objective import loss_of
from .progress import SolverProgress

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator
    from ..data.column_index import ActiveColumns
    from ..data.rows import Rows
    from .sgd import SGD
    from .sgd_state import SGDState

    Watch = Callable[[SolverProgress, SGDState], None]

AT_ONCE = 1 << 18  # rows between two looks at the outside world
REPORTS = 20  # of a pass, by default
WIDE = 1 << 18  # columns whose weights are too many for a cache
LONG = 8  # steps that make up for a search for the columns in use


class SGDRun:
    """One call of `SGD.run`, with what is the same in all its steps."""

    def __init__(
        self,
        solver: SGD,
        comm: Communicator,
        rows: Rows,
        state: SGDState,
        held_out: Rows | None,
        watch: Watch | None,
        every: int | None,
    ) -> None:
        self.solver, self.comm, self.rows, self.state = solver, comm, rows, state
        self.held_out, self.watch = held_out, watch
        self.loss = loss_of(solver.loss)
        for each in (rows, held_out):
            if each is not None:
                check_rows(each, self.loss)
        self._check_state()
        self.start, self.sent = comm.now(), self._sent()
        self.steps = -(-rows.total // solver.batch_size)
        self.every = max(1, every or self.steps // REPORTS) if watch else self.steps + 1
        self.exchange = Exchange(
            comm,
            rows.features + solver.intercept,
            solver.communication,
            solver.algorithm,
            solver.method,
        )
        self._narrow()
        self.csr = opened(self.rows)
        self.reported = (comm.now(), state.seen, state.pending)

    def _check_state(self) -> None:
        """Raise if the state or the held-out rows are made for something else."""
        state, rows, batch = self.state, self.rows, self.solver.batch_size
        widths = {"state": state.features}
        if self.held_out is not None:
            widths["held-out rows"] = self.held_out.features
        for what, width in widths.items():
            if width != rows.features:
                raise ValueError(
                    f"SGD: the rows have {rows.features} features, the {what} {width}"
                )
        if not state.suits(self.solver.penalty, self.solver.momentum, self.solver.adaptive):
            raise ValueError(
                "SGD: the state is of a solver with another penalty, momentum or `adaptive`; "
                "begin a new one with `init`, and copy the weights if they are wanted"
            )
        if state.step and (state.seen - state.step * batch) % rows.total:
            raise ValueError(
                f"SGD: the state is in the middle of a pass with other batches than {batch}"
            )

    def _narrow(self) -> None:
        """Go on with the columns in use alone, if there are many others; collective.

        Whether to look for them must not depend on how far the state has come: a run that
        goes on from a checkpoint has to take the same steps.
        """
        solver, state, rows = self.solver, self.state, self.rows
        known = check_partition(self.comm, rows, state.knows(rows))
        wanted = (
            rows.features >= WIDE
            and solver.epochs * self.steps >= LONG
            and solver.communication == "sparse"
            and solver.method is None
        )
        if not (wanted and known):
            state.widen()
        if wanted and not known:
            state.narrow(ColumnIndex.among(self.comm, rows, state.model))
        if state.search is not None and state.search.used is not None:
            self._renumber(state.search.rows, state.search.used)

    def _renumber(self, narrow: Rows, used: ActiveColumns) -> None:
        """Work on the columns in use."""
        self.rows = replace(narrow, labels=self.rows.labels, weights=self.rows.weights)
        if self.held_out is not None:
            self.held_out = used.rows(self.held_out)
        self.exchange.size = narrow.features + self.solver.intercept

    def go(self) -> SGDState:
        """Make them all; the state after the last."""
        state, solver = self.state, self.solver
        while state.epoch < solver.epochs and state.stale < solver.patience:
            order, starts = batches(
                self.rows.first,
                len(self.rows),
                self.rows.total,
                solver.batch_size,
                solver.seed,
                state.epoch,
            )
            state.open_pass(self.steps)
            while state.step < self.steps:
                self._advance(order, starts)
            state.losses.append(self._global_mean(state.pending, self.rows.total))
            state.close_pass()
            self.reported = (self.reported[0], self.reported[1], 0.0)
            if self.held_out is not None:
                self._compare(self.held_out)
        return state

    def _advance(self, order: NDArray[np.int64], starts: NDArray[np.int64]) -> None:
        """LearningRate up to the next report, or to the next look outside."""
        state, solver = self.state, self.solver
        stop = min(
            self.steps,
            state.step + max(1, AT_ONCE // solver.batch_size),
            (state.step // self.every + 1) * self.every,
        )
        edges = np.minimum(
            np.arange(state.step, stop + 1) * solver.batch_size, self.rows.total
        )
        before = state.seen - edges[0]  # rows of earlier passes
        rates = solver.learning_rate.rates((before + edges[:-1]) / self.rows.total)
        if self.exchange.alone:
            state.pending = loops.sgd_steps(
                self.csr,
                order,
                starts[state.step : stop + 1],
                rates,
                self.loss.code,
                solver.intercept * solver.intercept_rate,
                state.model,
                solver.penalty.l1,
                solver.decay,
                state.pending,
            )
        else:
            for t, rate in enumerate(rates):
                chosen = order[starts[state.step + t] : starts[state.step + t + 1]]
                self._step(chosen, int(edges[t + 1] - edges[t]), float(rate))
        state.step, state.seen = stop, int(before + edges[-1])
        if self.watch is not None and (stop % self.every == 0 or stop == self.steps):
            self._report(self.watch, float(rates[-1]))

    def _step(self, chosen: NDArray[np.int64], count: int, rate: float) -> None:
        """One step with all ranks, of which this one has the chosen rows."""
        state, solver = self.state, self.solver
        mine = loops.gradient(self.csr, chosen, self.loss.code, 1.0 / count, state.model)
        state.pending += mine.loss
        stored = mine.indices.size - (not solver.intercept)
        gradient = Stream.unchecked(
            self.exchange.size, mine.indices[:stored], mine.values[:stored]
        )
        total, state.method = self.exchange.sum(gradient, state.method)
        loops.apply_gradient(
            state.model,
            solver.penalty.l1,
            solver.decay,
            rate,
            total.raw_indices,
            total.raw_values,
            solver.intercept_rate,
        )

    def _global_mean(self, mine: float, count: int) -> float:
        """The mean of losses over all ranks; says what to do if there is none."""
        total = float(self.comm.allreduce(np.array([mine], np.float64))[0])
        if not np.isfinite(total):
            raise FloatingPointError(
                f"SGD: the loss is {total} in epoch {self.state.epoch}, before step "
                f"{self.state.step} of {self.steps}; lower the learning rate, "
                f"{self.solver.learning_rate}"
            )
        return total / max(count, 1)

    def _report(self, watch: Watch, rate: float) -> None:
        state, now = self.state, self.comm.now()
        then, seen, pending = self.reported
        rows = state.seen - seen
        progress = SolverProgress(
            epoch=state.epoch,
            step=state.step,
            steps=self.steps,
            loss=self._global_mean(state.pending - pending, rows),
            rate=rate,
            rows_per_second=rows / max(now - then, 1e-9),
            seconds=now - self.start,
            communicating=self.exchange.seconds,
            bytes=self._sent() - self.sent,
            dense_bytes=self.exchange.dense_bytes,
        )
        watch(progress, state)
        self.reported = (self.comm.now(), state.seen, state.pending)

    def _sent(self) -> int:
        stats = self.comm.stats
        return stats.bytes + stats.native_bytes

    def _compare(self, held_out: Rows) -> None:
        """Whether this pass was worth it."""
        state = self.state  # after a pass, so its weights are settled
        weights = np.ascontiguousarray(state.model.coefficients)
        found = mean_loss(self.comm, held_out, self.loss, weights, state.intercept)
        state.held_out.append(found)
        better = found < state.best * (1.0 - self.solver.tol)
        state.stale = 0 if better else state.stale + 1
        state.best = min(state.best, found)
