"""compress(model, "auto"): measure plain DDP, then choose a method, or none.

A few steps of plain DDP show how long a step takes and how much of its communication is
exposed. With the bandwidth that follows, the planner names the least lossy method that is
nearly as fast as the fastest. The method is then run on random gradients of the model's shapes
and rows of its sparse tables. A hook is registered only if the step, with all communication
exposed, would be clearly faster than plain DDP.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..aggregate import Compressed, Dense
from ..aggregate.planning import planned_methods
from ..aggregate.schedule import at
from ..costs import ring_nbytes
from ..network.models import Model
from ..network.plan import plan
from ..quantize import QSGD, Half
from ..sparsify import TopK
from ..transport.stats import text_table
from .recommended import UNKNOWN_RATIO, is_adaptive, recommended

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from ..aggregate import Method
    from ..communicator.communicator import Communicator
    from ..costs import Network
    from ..network.plan import Plan

    Shapes = Mapping[str, tuple[int, ...]]

WARM_UP, MEASURED = 3, 5  # steps; DDP rebuilds its buckets after the first
TRIALS = 3
GAIN = 0.95  # a compressed step may take at most this fraction of a plain one
RATIOS = (0.01,)  # of TopK; smaller ones need a warm-up
NANO = 1e-9


@dataclass(frozen=True)
class StepTimes:
    """Seconds of a step of plain DDP.

    Attributes:
        step: The whole step.
        communication: From the first bucket to the last.
        exposed: Communication after the end of the backward pass.
        backward: The backward pass.
    """

    step: float
    communication: float
    exposed: float
    backward: float

    @property
    def compute(self) -> float:
        """Seconds of the step without exposed communication."""
        return max(self.step - self.exposed, 1e-6)


class StepTimer:
    """Measures steps of a DDP model with DDP's own clocks."""

    def __init__(self) -> None:
        self._starts: list[float] = []
        self._rows: list[tuple[float, float, float]] = []

    def tick(self, ddp: Any) -> bool:
        """Record the start of a forward pass; return whether there are enough steps."""
        self._starts.append(time.perf_counter())
        data = ddp._get_ddp_logging_data()
        communication = data.get("backward_comm_time", 0)
        overlap = data.get("backward_compute_comm_overlap_time", 0)
        backward = data.get("backward_compute_time", 0)
        exposed = max(0, communication - overlap)
        self._rows.append((communication * NANO, exposed * NANO, backward * NANO))
        return len(self._starts) > WARM_UP + MEASURED

    @property
    def progress(self) -> str:
        """How many steps have been measured, of how many."""
        return f"{max(0, len(self._starts) - 1)} of {WARM_UP + MEASURED} steps"

    def measure(self, comm: Communicator) -> StepTimes:
        """Return medians over the steps. Collective.

        Step and backward pass are those of the slowest rank. Communication is that of the rank
        that waits least, because the others also wait for slower ranks.
        """
        steps = np.diff(self._starts[WARM_UP:])
        columns = zip(*self._rows[WARM_UP + 1 :], strict=True)
        communication, exposed, backward = map(median, columns)
        slowest = np.array([median(steps), backward], np.float64)
        step, backward = map(float, comm.allreduce(slowest, op="max"))
        shortest = np.array([communication, exposed], np.float64)
        communication, exposed = map(float, comm.allreduce(shortest, op="min"))
        return StepTimes(step, communication, exposed, backward)


@dataclass(frozen=True)
class Decision:
    """What "auto" chose, and from which measurements.

    Attributes:
        method: The method, or None to leave DDP as it is.
        why: The reason.
        measured: Times of plain DDP.
        planned: The planner's estimates, if it was asked.
    """

    method: Method | None
    why: str
    measured: StepTimes
    planned: Plan | None = None

    def __str__(self) -> str:
        m = self.measured
        text = (
            f"{self.why}\nmeasured: a step of plain DDP takes {_ms(m.step)}, {_ms(m.exposed)} "
            f"of it waiting for allreduces (which take {_ms(m.communication)})"
        )
        if self.planned is None:
            return text
        rows = [("planned method", "step", "speedup")]
        rows += [
            (row.method, _ms(row.step), f"{row.speedup:.2f}x") for row in self.planned.bests
        ]
        return f"{text}\n\n{text_table([tuple(row) for row in rows])}"


@dataclass(frozen=True)
class RowUsage:
    """Shape of an embedding table, and the number of rows that a step used."""

    shape: tuple[int, ...]
    used: int


def decide(
    comm: Communicator,
    shapes: Shapes,
    times: StepTimes,
    tables: Mapping[str, RowUsage] | None = None,
    excluded: Shapes | None = None,
    optimizer: torch.optim.Optimizer | None = None,
) -> Decision:
    """Choose a method for a model. Collective, with the same result on all ranks.

    Args:
        comm: The communicator.
        shapes: Shapes of the dense gradients by name.
        times: Times of plain DDP.
        tables: Sparse gradients, which are always sent as rows.
        excluded: Shapes of dense gradients that are not compressed.
        optimizer: The optimizer. Only methods with known accuracy under it are considered.
    """
    if comm.size == 1:
        return Decision(None, "no hook: there is only one rank", times)
    if not any(Compressed().compresses_shape(n, s) for n, s in shapes.items()):
        return Decision(
            None, "no hook: no dense gradient is large enough to compress", times
        )
    model = Model("this model", tuple(shapes.values()), "its parameters")
    network = _with_bandwidth(comm.network, model, comm.size, times)
    overlap = min(1.0, times.backward / times.compute)
    methods = {m.planning(model.tensors).label: m for m in _candidates(optimizer)}
    planned = plan(
        model,
        comm.size,
        network,
        times.compute,
        methods=tuple(methods.values()),
        overlap=overlap,
    )
    lossless = tuple(c for c in planned.candidates if not c.lossy)
    planned = replace(planned, candidates=lossless)
    chosen = planned.chosen
    if chosen is planned.baseline:
        return Decision(None, f"no hook: {planned.why}", times, planned)
    method = methods[chosen.name]
    seconds = _time_trials(comm, method, shapes, tables or {})
    if excluded:
        seconds += _time_trials(comm, Dense(), excluded, {})
    step = times.compute + seconds
    figures = (
        f"{chosen.name} takes {_ms(seconds)} per step on random gradients; with all of it "
        f"exposed a step takes {_ms(step)} in place of {_ms(times.step)}"
    )
    if step > GAIN * times.step:
        return Decision(None, f"no hook: {figures}", times, planned)
    if at(getattr(method, "sparsify", None), 0) is not None and optimizer is not None:
        method = recommended(optimizer)
    return Decision(method, f"{method}: {figures}", times, planned)


def _candidates(optimizer: torch.optim.Optimizer | None) -> list[Method]:
    """Return the methods whose accuracy is on the results page (docs/training.md).

    These are the dense mean, 16-bit values and QSGD, without error feedback under Adam; under
    SGD also the recommended method, here with the ratio that it ends with. Without an optimizer
    all planned methods are considered.
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
    return found if adaptive else [*found, Compressed(TopK(UNKNOWN_RATIO), QSGD(4))]


def _with_bandwidth(
    network: Network, model: Model, ranks: int, times: StepTimes
) -> Network:
    """Return the network model with the bandwidth that plain DDP achieved."""
    moved = ring_nbytes(ranks, 4 * model.parameters)
    return replace(
        network, seconds_per_byte=max(times.communication, 1e-6) / moved, calibration=()
    )


def _time_trials(
    comm: Communicator, method: Method, shapes: Shapes, tables: Mapping[str, RowUsage]
) -> float:
    """Return the median seconds of a step of the method on the slowest rank. Collective."""
    draw = np.random.default_rng(comm.rank)
    gradients: dict[str, Any] = {
        n: draw.standard_normal(s, np.float32) for n, s in shapes.items()
    }
    gradients |= {n: _random_rows(draw, rows) for n, rows in tables.items()}
    state, seconds = method.init({}), []
    for _ in range(1 + TRIALS):
        comm.barrier()
        start = time.perf_counter()
        _, state = method.aggregate(comm, gradients, state)
        seconds.append(time.perf_counter() - start)
    own = np.array([median(seconds[1:])], np.float64)
    return float(comm.allreduce(own, op="max")[0])


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


def is_training(ddp: Any) -> bool:
    """Return whether DDP averages gradients after this forward pass.

    The mode of the DDP module itself says nothing: Lightning leaves it in eval mode after a
    validation. A model may also train a part of itself only.
    """
    averages = torch.is_grad_enabled() and ddp.require_backward_grad_sync
    return bool(averages) and any(module.training for module in ddp.module.modules())
