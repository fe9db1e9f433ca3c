"""compress(model, "auto"): measure first, then choose a method, or none, and say why.

Some steps of plain DDP tell how long a step takes and how much of its communication is not
hidden. With the rate that follows from that, the planner names the least lossy method that is
nearly as fast as the fastest. It is then tried on gradients of the model's shapes, together
with rows of its sparse tables, which no method shortens. Only if the step with it, with
nothing hidden, would be clearly faster, is a hook registered.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..aggregate import Compressed, Dense, PowerSGD
from ..network.models import DENSE_BELOW, Model
from ..network.plan import plan
from ..quantize import QSGD, Half
from ..sparsify import TopK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from ..aggregate import Method
    from ..collectives import Network
    from ..communicator.communicator import Communicator
    from ..network.candidates import Candidate
    from ..network.plan import Plan

    Shapes = Mapping[str, tuple[int, ...]]

WARM_UP, MEASURED = 3, 5  # steps; DDP makes its buckets anew after the first
TRIES = 3
GAIN = 0.95  # of the plain step that a compressed one may take at most
RATIOS = (0.01,)  # what TopK is considered with: less needs a warm-up
NANO = 1e-9


@dataclass(frozen=True)
class StepTimes:
    """Seconds of a step of plain DDP."""

    step: float
    communication: float  # from the first bucket to the last
    exposed: float  # after the backward pass has ended
    backward: float

    @property
    def compute(self) -> float:
        """Without what is exposed."""
        return max(self.step - self.exposed, 1e-6)


class StepTimer:
    """Measures steps of a DDP model by its own clocks."""

    def __init__(self) -> None:
        self._starts: list[float] = []
        self._rows: list[tuple[float, float, float]] = []

    def tick(self, ddp: Any) -> bool:
        """A forward pass begins; whether there are enough."""
        self._starts.append(time.perf_counter())
        data = ddp._get_ddp_logging_data()
        sums = data.get("backward_comm_time", 0)
        overlap = data.get("backward_compute_comm_overlap_time", 0)
        backward = data.get("backward_compute_time", 0)
        self._rows.append((sums * NANO, max(0, sums - overlap) * NANO, backward * NANO))
        return len(self._starts) > WARM_UP + MEASURED

    def measured(self, comm: Communicator) -> StepTimes:
        """The medians over steps: a collective call.

        Of the slowest rank; of sums, those of the rank that waits least: the others also wait for
        ranks that compute longer.
        """
        lasted = np.diff(self._starts[WARM_UP:])
        columns = zip(*self._rows[WARM_UP + 1 :], strict=True)
        sums, exposed, backward = map(median, columns)
        slowest = np.array([median(lasted), backward], np.float64)
        step, backward = map(float, comm.allreduce(slowest, op="max"))
        least = np.array([sums, exposed], np.float64)
        sums, exposed = map(float, comm.allreduce(least, op="min"))
        return StepTimes(step, sums, exposed, backward)


@dataclass(frozen=True)
class Decision:
    """What was decided, and from what."""

    method: Method | None
    why: str
    measured: StepTimes
    planned: Plan | None = None

    def __str__(self) -> str:
        m = self.measured
        lines = [
            self.why,
            (
                f"measured: a step of plain DDP takes {_ms(m.step)}, {_ms(m.exposed)} of it "
                f"waiting for sums (which take {_ms(m.communication)})"
            ),
        ]
        if self.planned is not None:
            lines.append("planned, with that network:")
            lines += [
                f"  {row.method:<18}{_ms(row.step):>12}  {row.speedup:.2f}x"
                for row in self.planned.bests
            ]
        return "\n".join(lines)


@dataclass(frozen=True)
class RowUsage:
    """Of a table, those that a step has used."""

    shape: tuple[int, ...]
    used: int


def decide(
    comm: Communicator,
    shapes: Shapes,
    found: StepTimes,
    tables: Mapping[str, RowUsage] | None = None,
    left: Shapes | None = None,
) -> Decision:
    """What to do with a model: a collective call, with the same answer on all ranks.

    Args:
        comm: The ranks.
        shapes: Of dense gradients.
        found: How long plain steps take.
        tables: Sparse gradients, which always travel as rows.
        left: Dense gradients that are not to be compressed.
    """
    if comm.size == 1:
        return Decision(None, "no hook: there is only one rank", found)
    if not any(math.prod(s) > DENSE_BELOW for s in shapes.values() if len(s) > 1):
        return Decision(
            None, "no hook: no dense gradient is large enough to compress", found
        )
    model = Model("this model", tuple(shapes.values()), "its parameters")
    network = _as_measured(comm.network, model, comm.size, found)
    overlap = min(1.0, found.backward / found.compute)
    planned = plan(model, comm.size, network, found.compute, overlap=overlap, ratios=RATIOS)
    least_lossy = tuple(c for c in planned.candidates if not c.lossy)
    planned = replace(planned, candidates=least_lossy)
    row = planned.recommended
    chosen = next(c for c in least_lossy if c.name == row.method)
    if chosen.dense:
        return Decision(None, f"no hook: {planned.why}", found, planned)
    method = method_of(chosen)
    seconds = _tried(comm, method, shapes, tables or {})
    if left:
        seconds += _tried(comm, Dense(), left, {})
    step = found.compute + seconds
    figures = (
        f"{chosen.name} takes {_ms(seconds)} a step, tried on random gradients, and with "
        f"nothing of it hidden a step {_ms(step)} in place of {_ms(found.step)}"
    )
    if step > GAIN * found.step:
        return Decision(None, f"no hook: {figures}", found, planned)
    return Decision(method, f"{method}: {figures}", found, planned)


def _as_measured(network: Network, model: Model, ranks: int, found: StepTimes) -> Network:
    """The network with the rate that the dense sums have had."""
    moved = 2 * (ranks - 1) / ranks * 4 * model.parameters
    return replace(
        network, seconds_per_byte=max(found.communication, 1e-6) / moved, calibration=()
    )


def method_of(c: Candidate) -> Method:
    """What the planner speaks of."""
    if c.rank:
        return PowerSGD(rank=c.rank)
    if c.ratio < 1:
        return Compressed(TopK(c.ratio), QSGD(bits=8) if c.each < 4 else None)
    if c.dense:
        return Dense()
    return Compressed(quantize=Half() if c.each == 2 else QSGD(bits=4))


def _tried(
    comm: Communicator, method: Method, shapes: Shapes, tables: Mapping[str, RowUsage]
) -> float:
    """The median seconds of a step of the method alone, of the slowest rank."""
    draw = np.random.default_rng(comm.rank)
    gradients: dict[str, Any] = {
        n: draw.standard_normal(s, np.float32) for n, s in shapes.items()
    }
    gradients |= {n: _random_rows(draw, rows) for n, rows in tables.items()}
    state, seconds = method.init({}), []
    for _ in range(1 + TRIES):
        comm.barrier()
        start = time.perf_counter()
        _, state = method.aggregate(comm, gradients, state)
        seconds.append(time.perf_counter() - start)
    mine = np.array([median(seconds[1:])], np.float64)
    return float(comm.allreduce(mine, op="max")[0])


def _random_rows(draw: np.random.Generator, rows: RowUsage) -> Tensor:
    places = draw.choice(rows.shape[0], min(rows.used, rows.shape[0]), replace=False)
    values = draw.standard_normal((len(places), *rows.shape[1:]), np.float32)
    return torch.sparse_coo_tensor(
        torch.from_numpy(np.sort(places)[None]),
        torch.from_numpy(values),
        rows.shape,
        is_coalesced=True,
        check_invariants=False,
    )


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"


def watching(ddp: Any) -> bool:
    """Whether this forward pass leads to sums."""
    return bool(torch.is_grad_enabled() and ddp.training and ddp.require_backward_grad_sync)
