"""The epochs of one call of `SGD.run`: batch after batch, on all ranks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ... import decentralized
from .. import loops
from ..data.column_index import MIN_FEATURES, ColumnIndex
from ..data.partition import check_partition
from ..data.shuffle import batches
from .gradient_reduction import GradientReduction
from .local_steps import LocalSteps
from .neighbor_steps import NeighborSteps
from .objective import check_rows, loss_of, mean_loss, to_csr
from .solver_progress import SolverProgress

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator
    from ..data.column_index import ActiveColumns
    from ..data.rows import Rows
    from .sgd import SGD
    from .sgd_state import SGDState

    Watch = Callable[[SolverProgress, SGDState], None]

CHUNK_ROWS = 1 << 18  # rows per call of the compiled loop, so that signals are handled
REPORTS = 20  # per epoch, by default
MIN_STEPS = 8  # steps that pay for a search for active columns


class SGDRun:
    """One call of `SGD.run`: what its steps have in common. All methods are collective."""

    def __init__(
        self,
        solver: SGD,
        comm: Communicator,
        rows: Rows,
        state: SGDState,
        validation: Rows | None,
        watch: Watch | None,
        every: int | None,
        flush: bool = True,
    ) -> None:
        self.solver, self.comm, self.rows, self.state = solver, comm, rows, state
        self.validation, self.watch = validation, watch
        self.flushes = flush or validation is not None
        self.loss = loss_of(solver.loss)
        for each in (rows, validation):
            if each is not None:
                check_rows(each, self.loss)
        self._check_state()
        self.start, self.bytes_before = comm.now(), self._bytes_sent()
        self.steps = -(-rows.total // solver.batch_size)
        self.every = max(1, every or self.steps // REPORTS) if watch else self.steps + 1
        self.reduction: GradientReduction | NeighborSteps
        if isinstance(solver.method, decentralized.Method):
            self.reduction = NeighborSteps(comm, solver.method, solver)
        else:
            self.reduction = GradientReduction(
                comm,
                rows.features + solver.intercept,
                solver.communication,
                solver.algorithm,
                solver.method,
            )
        self.local: LocalSteps | None = None
        if solver.local_steps > 1:
            assert isinstance(self.reduction, GradientReduction)  # checked by the solver
            self.local = LocalSteps(solver, self.reduction)
        self._compress_columns()
        self.csr = to_csr(self.rows)
        self.last_report = (comm.now(), state.seen, state.pending)

    def _check_state(self) -> None:
        """Raise ValueError if the state or the validation set does not fit."""
        solver, state, rows = self.solver, self.state, self.rows
        widths = {"state": state.features}
        if self.validation is not None:
            widths["validation set"] = self.validation.features
        for name, width in widths.items():
            if width != rows.features:
                raise ValueError(
                    f"SGD: the {name} must have {rows.features} features, as the rows, got "
                    f"{width}"
                )
        if not state.is_compatible(solver.penalty, solver.momentum, solver.adaptive):
            raise ValueError(
                "SGD: the state must be of a solver with the same penalty, momentum and "
                "adaptive; start from `init`, and copy the weights if needed"
            )
        made = min(
            state.step * solver.batch_size, rows.total
        )  # the last batch may be shorter
        if state.step and (state.seen - made) % rows.total:
            raise ValueError(
                f"SGD: batch_size must stay the same within an epoch, got "
                f"{solver.batch_size}"
            )

    def _compress_columns(self) -> None:
        """Continue with active columns only, if there are many others.

        Whether to search must not depend on the progress of the state: a run that resumes
        from a checkpoint must take the same steps.
        """
        solver, state, rows = self.solver, self.state, self.rows
        indexed = check_partition(self.comm, rows, state.is_indexed(rows))
        wanted = (
            self.flushes
            and rows.features >= MIN_FEATURES
            and solver.epochs * self.steps >= MIN_STEPS
            and solver.communication == "sparse"
            and solver.method is None
        )
        if not (wanted and indexed):
            state.expand()
        if wanted and not indexed:
            state.compress(ColumnIndex.build(self.comm, rows, state.model))
        if state.column_index is not None and state.column_index.active is not None:
            self._renumber(state.column_index.rows, state.column_index.active)

    def _renumber(self, compressed: Rows, active: ActiveColumns) -> None:
        self.rows = replace(compressed, labels=self.rows.labels, weights=self.rows.weights)
        if self.validation is not None:
            self.validation = active.rows(self.validation)
        assert isinstance(self.reduction, GradientReduction)  # compressed for it alone
        self.reduction.size = compressed.features + self.solver.intercept

    def epoch(self) -> None:
        """Complete the current epoch."""
        state, solver = self.state, self.solver
        order, offsets = batches(
            self.rows.first,
            len(self.rows),
            self.rows.total,
            solver.batch_size,
            solver.seed,
            state.epoch,
        )
        state.begin_epoch(self.steps)
        while state.step < self.steps:
            self._advance(order, offsets)
        state.losses.append(self._global_mean(state.pending, self.rows.total))
        state.end_epoch(flush=self.flushes)
        self.last_report = (self.last_report[0], self.last_report[1], 0.0)
        if self.validation is not None:
            weights = np.ascontiguousarray(state.model.coefficients)  # flushed above
            if state.averaged is not None:
                weights = np.ascontiguousarray(state.weights)
            state.validation_losses.append(
                mean_loss(self.comm, self.validation, self.loss, weights, state.intercept)
            )

    def _advance(self, order: NDArray[np.int64], offsets: NDArray[np.int64]) -> None:
        """Make steps up to the next report, or the next return to Python."""
        state, solver = self.state, self.solver
        stop = min(
            self.steps,
            state.step + max(1, CHUNK_ROWS // solver.batch_size),
            (state.step // self.every + 1) * self.every,
        )
        starts = np.minimum(
            np.arange(state.step, stop + 1) * solver.batch_size, self.rows.total
        )
        before = state.seen - starts[0]  # rows of earlier epochs
        rates = solver.learning_rate.at((before + starts[:-1]) / self.rows.total)
        counts, own = np.diff(starts), offsets[state.step : stop + 1]
        if isinstance(self.reduction, GradientReduction) and self.reduction.is_local:
            state.pending = self._sgd_steps(order, own, rates).run()
        elif self.local is not None and self.local.is_compiled:
            rows_per_rank = counts / self.comm.size
            first = begin = state.step
            while first < stop:
                last = min(stop, self.local.round_end(first, self.steps))
                part = slice(first - begin, last - begin)
                own = offsets[first : last + 1]
                scaled = rates[part] / rows_per_rank[part]
                self.local.steps(state, self.csr, order, own, scaled)
                if self.local.ends_round(last, self.steps):
                    self.local.exchange(state, last)
                first = last
        else:
            # The mean over ranks of their own gradients is that of the batch, and else the sum.
            is_own = self.local is not None or isinstance(self.reduction, NeighborSteps)
            shares = (self.comm.size if is_own else 1) / counts
            steps = self._sgd_steps(order, own, rates, shares)
            for t, rate in enumerate(rates.tolist()):
                self._step(steps, rate)
                made = state.step + t + 1
                if self.local is not None and self.local.ends_round(made, self.steps):
                    self.local.exchange(state, made)
            state.pending = steps.losses
        state.step, state.seen = stop, int(before + starts[-1])
        if stop == self.steps and isinstance(self.reduction, NeighborSteps):
            self.reduction.end_epoch(state)
        if self.watch is not None and (stop % self.every == 0 or stop == self.steps):
            self._report(self.watch, float(rates[-1]))

    def _sgd_steps(
        self,
        order: NDArray[np.int64],
        starts: NDArray[np.int64],
        rates: NDArray[np.float64],
        shares: NDArray[np.float64] = loops.EMPTY,
    ) -> loops.SGDSteps:
        """Return the steps on some batches, see `SGDSteps`."""
        state, solver = self.state, self.solver
        return loops.SGDSteps(
            self.csr,
            order,
            starts,
            rates,
            self.loss.code,
            solver.intercept * solver.intercept_rate,
            state.model,
            solver.penalty.l1,
            solver.decay,
            shares=shares,
            losses=state.pending,
        )

    def _step(self, steps: loops.SGDSteps, learning_rate: float) -> None:
        """Make the next step with all ranks."""
        state, gradient = self.state, steps.gradient()
        if isinstance(self.reduction, NeighborSteps):
            self.reduction.step(state, gradient, learning_rate)
        elif self.local is not None:
            self.local.step(state, steps, gradient)
        else:
            total, state.method = self.reduction.sum(gradient, state.method)
            steps.apply(total)

    def _global_mean(self, loss_sum: float, count: int) -> float:
        """Return the mean loss over all ranks; raise if it diverges."""
        total = float(self.comm.allreduce(np.array([loss_sum], np.float64))[0])
        if not np.isfinite(total):
            raise FloatingPointError(
                f"SGD: the loss must be finite, got {total} in epoch {self.state.epoch}, "
                f"before step {self.state.step} of {self.steps}; lower the learning rate, "
                f"{self.solver.learning_rate}"
            )
        return total / max(count, 1)

    def _report(self, watch: Watch, learning_rate: float) -> None:
        state, now = self.state, self.comm.now()
        then, seen, pending = self.last_report
        rows = state.seen - seen
        progress = SolverProgress(
            epoch=state.epoch,
            step=state.step,
            steps=self.steps,
            loss=self._global_mean(state.pending - pending, rows),
            learning_rate=learning_rate,
            rows_per_second=rows / max(now - then, 1e-9),
            seconds=now - self.start,
            communication_seconds=self.reduction.seconds,
            bytes=self._bytes_sent() - self.bytes_before,
            dense_bytes=self.reduction.dense_bytes,
        )
        watch(progress, state)
        self.last_report = (self.comm.now(), state.seen, state.pending)

    def _bytes_sent(self) -> int:
        stats = self.comm.stats
        return stats.bytes
