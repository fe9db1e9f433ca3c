"""A step on the paper's other systems: real gradients on simulated links.

Gradients are those of generated rows, 1000 per rank, at weights after an epoch over other
rows. They are reduced under a virtual clock, which messages and declared work advance. The
computing time of a rank is measured here, on one core.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

import numpy as np

import sparcml
from sparcml.linear import LOSSES, SGD, Constant, loops
from sparcml.linear.solvers.objective import to_csr

from .data import DATA
from .paper import BATCH, TABLE, Published

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparcml.linear import Rows

    Row = dict[str, Any]

RUNS = 5
SIMULATED = tuple(row for row in TABLE if row.network != "gige")
DENSE = "native"  # halving and doubling, by its declared cost


class Steps:
    """First step of all ranks with one loss.

    Args:
        rows: Rows to compute the weights from.
        loss: Name of the loss.
        rate: Learning rate of that computation.
    """

    def __init__(self, rows: Rows, loss: str, rate: float) -> None:
        self.loss = LOSSES[loss]
        solver = SGD(loss, learning_rate=Constant(rate), batch_size=BATCH // 10, epochs=1)
        with sparcml.world() as alone:
            state = solver.run(alone, rows)
        state.expand()  # other ranks' rows have other columns
        self.model = state.model
        self.gradients: list[sparcml.Stream] = []
        self.seconds = 0.0  # of a rank's gradient

    def add(self, rows: Rows) -> None:
        """Return the gradient of the next rank."""
        steps = self._steps(rows)
        self.gradients.append(steps.gradient())
        if len(self.gradients) == 1:
            self.rows = rows
            self.seconds = _median(self._steps(rows).gradient)

    def applied(self, total: sparcml.Stream) -> float:
        """Return the seconds of updating the weights."""
        steps = self._steps(self.rows)
        return _median(lambda: steps.apply(total), prepare=steps.gradient)

    def _steps(self, rows: Rows) -> loops.SGDSteps:
        """Return equal steps, enough for `_median`."""
        steps, count = RUNS + 1, len(rows)
        return loops.SGDSteps(
            to_csr(rows),
            np.tile(np.arange(count), steps),
            np.arange(steps + 1) * count,
            np.full(steps, 1e-9),
            self.loss.code,
            1.0,
            self.model,
            shares=np.full(steps, 1e-3),
        )


def measure(name: str, ranks: int = 32) -> list[Row]:
    """Return rows of the systems that cannot be emulated, up to a number of ranks."""
    data = DATA[name]
    assert data.recipe is not None
    wanted = [p for p in SIMULATED if p.data == data.of and p.ranks <= ranks]
    some = data.recipe.rows(BATCH)
    steps = {p.loss: Steps(some, p.loss, data.rate) for p in wanted}
    for rank in range(max(p.ranks for p in wanted)):
        rows = data.recipe.rows(BATCH, seed=1 + rank)
        for each in steps.values():
            each.add(rows)
    return [row for p in wanted for row in simulate(p, steps[p.loss])]


def simulate(published: Published, steps: Steps) -> list[Row]:
    """Return one row per allreduce: dense, sparse as in the paper, and `auto`."""
    kinds = {"dense": DENSE, "sparse": published.algorithm, "auto": "auto"}
    return [_row(published, steps, *kind) for kind in kinds.items()]


def _row(published: Published, steps: Steps, sums: str, algorithm: str) -> Row:
    def body(comm: sparcml.Communicator) -> tuple[float, str, sparcml.Stream | None]:
        total = comm.allreduce(steps.gradients[comm.rank], algorithm=algorithm)
        (taken,) = comm.stats.allreduces
        return comm.now(), taken, None if comm.rank else total

    found = sparcml.simulate(body, published.ranks, published.network, trace=0, timeout=1e6)
    _, taken, total = found.results[0]
    assert total is not None
    communicating = max(seconds for seconds, *_ in found.results)
    computing = steps.seconds + steps.applied(total)
    return {
        "kind": "simulated",
        "system": published.system,
        "network": published.network,
        "ranks": published.ranks,
        "data": published.data,
        "loss": published.loss,
        "sums": sums,
        "algorithm": taken,
        "given": steps.gradients[0].nnz,
        "result": total.nnz,
        "bytes": max(found.rank_bytes),
        "step": computing + communicating,
        "communicating": communicating,
    }


def _median(
    job: Callable[[], object], prepare: Callable[[], object] = lambda: None
) -> float:
    """Return the median seconds of a job, without those of what prepares each."""
    taken = []
    for _ in range(RUNS + 1):
        prepare()
        start = time.perf_counter()
        job()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[1:])
