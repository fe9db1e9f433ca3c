"""Training loop of all workloads: gradients, their mean, one step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sparcml.aggregate.stats import SelectionStats

from .ranks import launch

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from sparcml import Communicator, Method

    Arrays = dict[str, NDArray[np.float32]]

RANKS = 8
MARKS = 6  # points of the loss curve


@dataclass(frozen=True)
class Workload:
    """A model and its data.

    Attributes:
        name: Short name.
        about: Description in one line.
        rate: Learning rate of the dense run, used for all methods.
        steps: Number of steps.
        batch: Rows per rank and step.
        rows: Number of training rows.
        start: Returns the initial parameters from a seed.
        gradient: Returns the gradient of the mean loss over some rows.
        judge: Returns the loss over all rows, and the test accuracy.
    """

    name: str
    about: str
    rate: float
    steps: int
    batch: int
    rows: Callable[[], int]
    start: Callable[[int], Arrays]
    gradient: Callable[[Arrays, NDArray[np.intp]], Arrays]
    judge: Callable[[Arrays], tuple[float, float]]


class Run(NamedTuple):
    """Result of a run.

    Attributes:
        curve: Pairs of step and loss over all rows.
        accuracy: Test accuracy after the last step.
        sent: Bytes sent by all ranks in all steps.
        share: Fraction of the norm of the corrected gradient that was selected, over all steps.
    """

    curve: list[tuple[int, float]]
    accuracy: float
    sent: int
    share: float

    @property
    def loss(self) -> float:
        """Final loss."""
        return self.curve[-1][1]


def train(
    work: Workload,
    method: Method,
    seed: int,
    *,
    rate: float = 1.0,
    steps: int | None = None,
    ranks: int = RANKS,
) -> Run:
    """Train with `rate` times the learning rate, on thread ranks."""
    steps = work.steps if steps is None else steps
    marks = {round(steps * (i + 1) / MARKS) for i in range(MARKS)}
    eta = np.float32(work.rate * rate)

    def body(comm: Communicator) -> tuple[list[tuple[int, Arrays]], float]:
        parameters = work.start(seed)
        rng = np.random.default_rng([seed, comm.rank])
        mine = np.arange(comm.rank, work.rows(), comm.size)
        state, kept = method.init(parameters), []
        for step in range(1, steps + 1):
            gradient = work.gradient(parameters, rng.choice(mine, work.batch))
            mean, state = method.aggregate(comm, gradient, state)
            parameters = {n: w - eta * mean[n] for n, w in parameters.items()}
            if comm.rank == 0 and step in marks:
                kept.append((step, parameters))
        norm = comm.cache.get(SelectionStats).selected_norm
        return kept, 1.0 if norm is None else norm

    work.rows()  # read before the clock of the first wait runs
    found, sent = launch(body, ranks)
    judged = [(step, *work.judge(parameters)) for step, parameters in found[0][0]]
    return Run(
        [(step, loss) for step, loss, _ in judged],
        judged[-1][2],
        sent,
        float(np.mean([share for _, share in found])),
    )
