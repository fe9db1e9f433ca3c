"""Times of the steps of a DDP model, by DDP's own clocks."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from ..communicator.communicator import Communicator

WARM_UP, MEASURED = 3, 5  # steps; DDP rebuilds its buckets after the first
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
        self.restart()

    def restart(self) -> None:
        """Forget all steps."""
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


def is_training(ddp: Any) -> bool:
    """Return whether DDP averages gradients after this forward pass.

    The mode of the DDP module itself says nothing: Lightning leaves it in eval mode after a
    validation. A model may also train a part of itself only.
    """
    averages = torch.is_grad_enabled() and ddp.require_backward_grad_sync
    return bool(averages) and any(module.training for module in ddp.module.modules())
