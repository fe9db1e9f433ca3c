"""Mini-batch stochastic gradient descent with sparse gradients.

Every step sums the gradients of all ranks' rows of a batch and changes the weights of the
features in it. Which rows a batch has does not depend on the number of ranks, and nothing is
lost on the way unless a method is asked for; so the weights are the same, up to rounding, for
any number of ranks, with sparse and with dense communication.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from ..checks import check_real, check_whole
from ..kernels import linear as loops
from ..stream import Stream
from .evaluate import check_rows, mean_loss, opened
from .exchange import COMMUNICATION, Exchange
from .losses import loss_of
from .order import batches
from .penalty import Penalty
from .progress import Progress
from .shares import check_shares
from .state import State
from .steps import Constant, Steps
from .used import Search

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ..aggregate import Method
    from ..communicator import Communicator
    from .rows import Rows
    from .used import UsedColumns

    Watch = Callable[[Progress, State], None]

AT_ONCE = 1 << 18  # rows between two looks at the outside world
REPORTS = 20  # of a pass, by default
WIDE = 1 << 18  # columns whose weights are too many for a cache
LONG = 8  # steps that make up for a search for the columns in use
LEAST = 1e-30  # to be added to sums of squares: above zero in float32, too


@dataclass(frozen=True)
class SGD:
    """Makes mean loss + penalty small, step by step.

        g = mean over the batch of weight * loss'(w.x + b) * x
        m = momentum * m + g
        w = soft((1 - rate * l2 / (1 - momentum)) * w - rate * m, rate * l1)

    where m becomes g / (1 - momentum) if g stays the same, so that the penalty keeps its
    weight against the loss. This is for all coordinates in every step, though only those in
    the batch are written (see `penalty`). The intercept is stepped along its own gradient and
    not penalised.

    With `adaptive` (AdaGrad) each coordinate has a rate of its own, smaller the more it has
    been moved already:

        s = s + g^2, r = rate / sqrt(adaptive + s)
        w = flow(w - r * g, r)

    where s begins with zero, and flow(w, r) follows the penalty's own pull,
    w' = -(l1 sign w + l2 w), for a time r: for a small r the same as soft((1 - r * l2) * w,
    r * l1).

    Reference: Duchi, Hazan, Singer: Adaptive Subgradient Methods for Online Learning and
    Stochastic Optimization, 2011.

    Args:
        loss: logistic, hinge, squared_hinge (labels -1 and 1) or squared.
        penalty: On large weights.
        steps: The rates.
        batch: Rows of a step, over all ranks.
        epochs: Passes over all rows.
        momentum: How much of the last step goes into the next; not together with l1, for
            then weights that are not in a batch would have to be followed step by step.
        adaptive: As above; None for the same rate everywhere. With a number that is small
            against squared gradients, rare features take steps as long as frequent ones;
            with a large one all rates are about rate / sqrt(adaptive). Not together with
            momentum.
        intercept: Whether there is one.
        intercept_rate: Its rate, against the others'. It is in every row: where features are
            rare and rates large, 0.01 keeps it from swinging.
        seed: Of the order of rows, anew in each pass; None keeps them as they are.
        communication: "sparse", or "dense": the same with sums of dense vectors by the
            engine itself, for comparison.
        algorithm: Of sparse sums, as for `Communicator.allreduce`.
        method: A method of `sparcml.aggregate` that compresses gradients, instead.
        patience: With held-out rows: stop after so many passes without a loss that is
            smaller by `tolerance` than the smallest before.
        tolerance: Relative.
    """

    loss: str = "logistic"
    penalty: Penalty = field(default_factory=Penalty)
    steps: Steps = field(default_factory=lambda: Constant(0.1))
    batch: int = 1
    epochs: int = 5
    momentum: float = 0.0
    adaptive: float | None = None
    intercept: bool = True
    intercept_rate: float = 1.0
    seed: int | None = 0
    communication: str = "sparse"
    algorithm: str = "auto"
    method: Method | None = None
    patience: int = 3
    tolerance: float = 1e-4

    def __post_init__(self) -> None:
        loss_of(self.loss)
        for name in ("batch", "epochs", "patience"):
            check_whole(self, name)
            if getattr(self, name) < 1:
                raise ValueError(f"SGD: {name} must be >= 1, got {getattr(self, name)}")
        check_whole(self, "seed", optional=True)
        if self.seed is not None and self.seed < 0:
            raise ValueError(f"SGD: seed must be >= 0, or None, got {self.seed}")
        check_real(self, "momentum")
        check_real(self, "tolerance")
        if np.isnan(self.tolerance):
            raise ValueError("SGD: tolerance must be a number, got nan")
        check_real(self, "intercept_rate")
        if not 0 < self.intercept_rate < np.inf:
            raise ValueError(
                f"SGD: intercept_rate must be finite and > 0, got {self.intercept_rate}"
            )
        if not 0 <= self.momentum < 1:
            raise ValueError(f"SGD: momentum must be in [0, 1), got {self.momentum}")
        if self.momentum and self.penalty.l1:
            raise ValueError(
                "SGD: momentum and an l1 penalty do not go together; set one to 0"
            )
        if self.adaptive is not None:
            self._check_adaptive(self.adaptive)
        if self.communication not in COMMUNICATION:
            known = " or ".join(COMMUNICATION)
            raise ValueError(
                f"SGD: communication must be {known}, got {self.communication!r}"
            )

    def _check_adaptive(self, damping: float) -> None:
        check_real(self, "adaptive")
        if not LEAST <= damping < np.inf:
            raise ValueError(
                f"SGD: adaptive must be finite and >= {LEAST:g}, got {damping!r}"
            )
        if self.momentum:
            raise ValueError(
                "SGD: momentum and adaptive rates do not go together; leave one out"
            )

    @property
    def decay(self) -> float:
        """What weights shrink by in a step, divided by its rate."""
        return self.penalty.l2 / (1.0 - self.momentum)

    def init(self, rows: Rows) -> State:
        """The state before the first step: all weights zero, of the values' precision."""
        state = State.begin(
            rows.features, rows.values.dtype, self.penalty, self.momentum, self.adaptive
        )
        if self.method is not None:
            state.method = self.method.init(rows.features + self.intercept)
        return state

    def run(
        self,
        comm: Communicator,
        rows: Rows,
        state: State | None = None,
        *,
        held_out: Rows | None = None,
        watch: Watch | None = None,
        every: int | None = None,
    ) -> State:
        """Go on until all passes are made; a collective call.

        Args:
            comm: The ranks.
            rows: This rank's; all ranks' together are rows 0 to total.
            state: Where to go on, from `init` or `State.of`; it is changed.
            held_out: This rank's rows to stop early by.
            watch: Called now and then, on all ranks; the state may be kept by its `arrays`.
            every: Batches between two calls; a twentieth of a pass by default.

        Returns:
            The state after the last pass.
        """
        return _Run(self, comm, rows, state or self.init(rows), held_out, watch, every).go()


class _Run:
    """One call of `SGD.run`, with what is the same in all its steps."""

    def __init__(
        self,
        solver: SGD,
        comm: Communicator,
        rows: Rows,
        state: State,
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
        self.steps = -(-rows.total // solver.batch)
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
        state, rows, batch = self.state, self.rows, self.solver.batch
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
        known = check_shares(self.comm, rows, state.knows(rows))
        wanted = (
            rows.features >= WIDE
            and solver.epochs * self.steps >= LONG
            and solver.communication == "sparse"
            and solver.method is None
        )
        if not (wanted and known):
            state.widen()
        if wanted and not known:
            state.narrow(Search.among(self.comm, rows, state.model))
        if state.search is not None and state.search.used is not None:
            self._renumber(state.search.rows, state.search.used)

    def _renumber(self, narrow: Rows, used: UsedColumns) -> None:
        """Work on the columns in use."""
        self.rows = replace(narrow, labels=self.rows.labels, weights=self.rows.weights)
        if self.held_out is not None:
            self.held_out = used.rows(self.held_out)
        self.exchange.size = narrow.features + self.solver.intercept

    def go(self) -> State:
        state, solver = self.state, self.solver
        while state.epoch < solver.epochs and state.stale < solver.patience:
            order, starts = batches(
                self.rows.first,
                len(self.rows),
                self.rows.total,
                solver.batch,
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
        """Steps up to the next report, or to the next look outside."""
        state, solver = self.state, self.solver
        stop = min(
            self.steps,
            state.step + max(1, AT_ONCE // solver.batch),
            (state.step // self.every + 1) * self.every,
        )
        edges = np.minimum(np.arange(state.step, stop + 1) * solver.batch, self.rows.total)
        before = state.seen - edges[0]  # rows of earlier passes
        rates = solver.steps.rates((before + edges[:-1]) / self.rows.total)
        if self.exchange.alone:
            state.pending = loops.run(
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
        gradient = Stream.trusted(
            self.exchange.size, mine.indices[:stored], mine.values[:stored]
        )
        total, state.method = self.exchange.sum(gradient, state.method)
        loops.apply(
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
                f"{self.state.step} of {self.steps}: lower the rate of {self.solver.steps}"
            )
        return total / max(count, 1)

    def _report(self, watch: Watch, rate: float) -> None:
        state, now = self.state, self.comm.now()
        then, seen, pending = self.reported
        rows = state.seen - seen
        progress = Progress(
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
        return stats.bytes + stats.engine_bytes

    def _compare(self, held_out: Rows) -> None:
        """Whether this pass was worth it."""
        state = self.state  # after a pass, so its weights are settled
        weights = np.ascontiguousarray(state.model.plain)
        found = mean_loss(self.comm, held_out, self.loss, weights, state.intercept)
        state.held_out.append(found)
        better = found < state.best * (1.0 - self.solver.tolerance)
        state.stale = 0 if better else state.stale + 1
        state.best = min(state.best, found)
