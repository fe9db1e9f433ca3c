"""compress(model, "auto"): the search for a method, or for none.

A few steps of plain DDP show how long a step takes and how much of its communication is
exposed. Each method then has an estimate of its step, which gets better in three stages:

1. planned: by the planner, with the bandwidth that plain DDP achieved;
2. tried: by running the method on random gradients of the model's shapes and rows of its sparse
   tables, with all communication exposed;
3. measured: in steps of the training.

The choice is the least lossy method that is nearly as fast as the fastest. If it is only planned,
it is tried; if it is only tried, it is used and measured in the next steps; and then the choice
is made again. So the search ends with a method that was measured, or with the dense mean, which
plain DDP has measured. A hook is registered for the first method that is measured.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from enum import Enum
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..aggregate import Compressed, Dense, Schedule
from ..aggregate.planning import planned_methods
from ..costs import ring_nbytes
from ..observe.stats import text_table
from ..planning.models import Model
from ..planning.plan import NEAR, plan
from ..quantize import QSGD, Half
from .recommended import is_adaptive, recommended

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from ..aggregate import Method
    from ..communicator.communicator import Communicator
    from ..costs import Network
    from .step_timer import StepTimes

    Shapes = Mapping[str, tuple[int, ...]]

TRIALS, TRIAL_SECONDS = 3, 2.0  # of a method; fewer trials if they take longer together
RATIOS = (0.01,)  # of TopK; smaller ones need a warm-up


class Stage(Enum):
    """What an estimate is based on."""

    PLANNED = "planned"
    TRIED = "on random gradients, without overlap"
    MEASURED = "measured"


@dataclass
class Estimate:
    """Estimate of a step with a method; the same on all ranks.

    Attributes:
        name: Name in tables.
        method: The method.
        step: Seconds of a step, those after the stages of a schedule.
        stage: What it is based on.
        saved: Seconds by which steps after the stages of a schedule are shorter than the first.
    """

    name: str
    method: Method
    step: float
    stage: Stage
    saved: float = 0.0


@dataclass(frozen=True)
class Decision:
    """What "auto" chose, and from which estimates.

    Attributes:
        method: The method, or None for the dense mean.
        why: The reason.
        measured: Times of plain DDP.
        final: Whether the choice was measured.
        estimates: All methods that were considered, the least lossy first.
    """

    method: Method | None
    why: str
    measured: StepTimes
    final: bool = True
    estimates: tuple[Estimate, ...] = field(default=())

    def __str__(self) -> str:
        m = self.measured
        text = (
            f"{self.why}\nmeasured: a step of plain DDP takes {_ms(m.step)}, {_ms(m.exposed)} "
            f"of it waiting for allreduces (which take {_ms(m.communication)})"
        )
        if not self.estimates:
            return text
        rows = [("method", "step", "speedup", "estimate")]
        rows += [
            (e.name, _ms(e.step), f"{m.step / e.step:.2f}x", e.stage.value)
            for e in self.estimates
        ]
        return f"{text}\n\n{text_table([tuple(row) for row in rows])}"


@dataclass(frozen=True)
class RowUsage:
    """Shape of an embedding table, and the number of rows that a step used."""

    shape: tuple[int, ...]
    used: int


class MethodSearch:
    """Search for the method of a model.

    Args:
        comm: The communicator.
        shapes: Shapes of the dense gradients by name.
        times: Times of plain DDP.
        tables: Sparse gradients, which are always sent as rows.
        excluded: Shapes of dense gradients that are not compressed.
        optimizer: The optimizer. Only methods with known accuracy under it are considered.
    """

    def __init__(
        self,
        comm: Communicator,
        shapes: Shapes,
        times: StepTimes,
        tables: Mapping[str, RowUsage] | None = None,
        excluded: Shapes | None = None,
        optimizer: torch.optim.Optimizer | None = None,
    ) -> None:
        self._comm, self._times = comm, times
        self._shapes, self._tables, self._excluded = shapes, tables or {}, excluded or {}
        self._estimates: list[Estimate] = []
        self._chosen: Estimate | None = None
        self._obstacle = ""
        if comm.size == 1:
            self._obstacle = "there is only one rank"
        elif not any(Compressed().compresses_shape(n, s) for n, s in shapes.items()):
            self._obstacle = "no dense gradient is large enough to compress"
        else:
            self._estimates = _planned(comm, shapes, times, _candidates(optimizer))

    def decide(self) -> Decision:
        """Return the choice by what is known now. Collective, with the same result on all ranks."""
        if self._obstacle:
            return Decision(None, f"no hook: {self._obstacle}", self._times)
        while (best := self._best()).stage is Stage.PLANNED:
            self._try(best)
        self._chosen = best
        final = best.stage is Stage.MEASURED
        method = None if best.method.is_exact else best.method
        return Decision(method, self._why(best), self._times, final, self._copies())

    def record(self, seconds: float) -> None:
        """Replace the estimate of the last choice by the seconds of a step with it.

        Args:
            seconds: Seconds on the slowest rank, the same on all ranks.
        """
        assert self._chosen is not None
        self._chosen.step = max(self._times.compute, seconds - self._chosen.saved)
        self._chosen.stage = Stage.MEASURED

    def _best(self) -> Estimate:
        """Return the least lossy method that is nearly as fast as the fastest."""
        fastest = min(e.step for e in self._estimates)
        return next(e for e in self._estimates if e.step <= NEAR * fastest)

    def _why(self, best: Estimate) -> str:
        if not best.method.is_exact:
            return (
                f"{best.method}: a step takes {_ms(best.step)} ({best.stage.value}) in place "
                f"of {_ms(self._times.step)}"
            )
        others = [e for e in self._estimates if e is not best]
        fastest = min(others, key=lambda e: e.step)
        hooked = any(e.stage is Stage.MEASURED for e in others)
        return (
            f"{'no compression' if hooked else 'no hook'}: dense: no method is more than "
            f"{NEAR - 1:.0%} faster ({fastest.name}: {self._times.step / fastest.step:.2f}x, "
            f"{fastest.stage.value})"
        )

    def _copies(self) -> tuple[Estimate, ...]:
        return tuple(replace(estimate) for estimate in self._estimates)

    def _try(self, estimate: Estimate) -> None:
        """Run a method on random gradients. Collective."""
        later = settled(estimate.method)
        seconds = self._time(later, self._shapes, self._tables)
        if later != estimate.method:
            first = self._time(estimate.method, self._shapes, self._tables)
            estimate.saved = max(0.0, first - seconds)
        if self._excluded:
            seconds += self._time(Dense(), self._excluded, {})
        estimate.step, estimate.stage = self._times.compute + seconds, Stage.TRIED

    def _time(
        self, method: Method, shapes: Shapes, tables: Mapping[str, RowUsage]
    ) -> float:
        """Return the median seconds of a step of a method on the slowest rank. Collective."""
        comm = self._comm
        draw = np.random.default_rng(comm.rank)
        gradients: dict[str, Any] = {
            n: draw.standard_normal(s, np.float32) for n, s in shapes.items()
        }
        gradients |= {n: _random_rows(draw, rows) for n, rows in tables.items()}
        state, seconds = method.init({}), list[float]()
        while len(seconds) < 2 or (len(seconds) <= TRIALS and sum(seconds) < TRIAL_SECONDS):
            comm.barrier()
            start = time.perf_counter()
            _, state = method.aggregate(comm, gradients, state)
            own = np.array([time.perf_counter() - start], np.float64)
            seconds.append(float(comm.allreduce(own, op="max")[0]))
        return median(seconds[1:])  # the first one allocates memory


def settled(method: Method) -> Method:
    """Return a method as it is after the stages of its schedule."""
    sparsify = getattr(method, "sparsify", None)
    if not isinstance(sparsify, Schedule):
        return method
    return replace(method, sparsify=sparsify.stages[-1][1])  # type: ignore[type-var]


def _planned(
    comm: Communicator, shapes: Shapes, times: StepTimes, methods: list[Method]
) -> list[Estimate]:
    """Return estimates by the planner, and that of plain DDP, which was measured."""
    model = Model("this model", tuple(shapes.values()), "its parameters")
    planned = plan(
        model,
        comm.size,
        _with_bandwidth(comm.network, model, comm.size, times),
        times.compute,
        methods=tuple(settled(method) for method in methods),
        overlap=min(1.0, times.backward / times.compute),
    )
    estimates = []
    for method, candidate in zip(methods, planned.candidates, strict=True):
        if candidate is planned.baseline:
            estimates.append(Estimate(candidate.name, method, times.step, Stage.MEASURED))
        elif not candidate.lossy:
            step = planned.best(candidate.name).step
            estimates.append(Estimate(candidate.name, method, step, Stage.PLANNED))
    return estimates


def _candidates(optimizer: torch.optim.Optimizer | None) -> list[Method]:
    """Return the methods whose accuracy is on the results page (docs/training.md).

    These are the dense mean, 16-bit values and QSGD, without error feedback under Adam, and the
    recommended method. Without an optimizer all planned methods are considered.
    """
    planned = planned_methods(RATIOS)
    if optimizer is None:
        return list(planned)
    adaptive = is_adaptive(optimizer)
    found: list[Method] = []
    for m in planned:
        if isinstance(m, Dense):
            found.append(m)
        elif isinstance(m, Compressed) and m.sparsify is None:
            if isinstance(m.quantize, QSGD):
                found.append(replace(m, error_feedback=not adaptive))
            elif isinstance(m.quantize, Half):
                found.append(m)
    return [*found, recommended(optimizer)]


def _with_bandwidth(
    network: Network, model: Model, ranks: int, times: StepTimes
) -> Network:
    """Return the network model with the bandwidth that plain DDP achieved."""
    moved = ring_nbytes(ranks, 4 * model.parameters)
    return replace(
        network, seconds_per_byte=max(times.communication, 1e-6) / moved, calibration=()
    )


def _random_rows(draw: np.random.Generator, rows: RowUsage) -> Tensor:
    indices = draw.choice(rows.shape[0], min(rows.used, rows.shape[0]), replace=False)
    values = draw.standard_normal((len(indices), *rows.shape[1:]), np.float32)
    return torch.sparse_coo_tensor(
        torch.from_numpy(np.sort(indices)[None]),
        torch.from_numpy(values),
        rows.shape,
        is_coalesced=True,
        check_invariants=False,
    )


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"
