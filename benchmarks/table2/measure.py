"""One row of the table: the same training with one type of allreduce, on all ranks."""

from __future__ import annotations

import statistics
import zlib
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sparcml.costs import Workload
from sparcml.costs.lower_bound import lower_bound
from sparcml.linear import SGD, Constant, Penalty, SGDState, SolverProgress
from sparcml.linear.data.column_index import ActiveColumns

from .paper import dense_bytes
from .timed import Summary, Timed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sparcml import Communicator
    from sparcml.linear import Rows

    from .baselines import Plain
    from .data import Data

SUMS = ("sparse", "dense", "dense of used columns", "single master")
CLOSE = 1e-4  # of the largest weight: float32 sums in another order


class Runner:
    """Return all rows of one data set.

    Args:
        comm: Communicator.
        data: Data set, generated before timing.
        link: Link bandwidth in bytes per second.
        plain: Baselines with dense vectors.
    """

    def __init__(self, comm: Communicator, data: Data, link: float, plain: Plain) -> None:
        self.comm, self.data, self.link, self.plain = comm, data, link, plain
        self.rows: Rows = data.rows(comm)
        self.weights: dict[str, NDArray[Any]] = {}  # of sparse sums after a pass, by loss

    def measure(self, loss: str, sums: str, passes: int) -> dict[str, Any]:
        """Return medians over epochs, after a warm-up epoch; the same on all ranks."""
        comm, rows = self.comm, self.rows
        used = self._used() if sums == "dense of used columns" else None
        if used is not None:
            rows = used.rows(rows)
        size = rows.features + 1
        timed = Timed(comm, size, self.plain if sums == "single master" else None)
        solver = SGD(
            loss,
            learning_rate=Constant(self.data.rate),
            batch_size=self.data.batch(comm.size),
            epochs=1 + passes,
            communication="sparse" if sums == "sparse" else "dense",
        )
        laps = _Laps(comm, timed)
        comm.stats.reset()
        solver.run(cast("Communicator", timed), rows, watch=laps.end, every=rows.total)
        apart, same = self._compare(loss, _wide(laps.weights, used))
        row = self._row(laps, sums, rows.features)
        row |= {"loss": loss, "sums": sums, "passes": passes}
        return row | {"apart": apart, "wrong": int(not same or not apart <= CLOSE)}

    def _compare(self, loss: str, found: NDArray[Any]) -> tuple[float, bool]:
        """Return the difference to the weights of the sparse run, and whether ranks agree."""
        marks = self.comm.allgather(np.array([zlib.crc32(found.data)], np.float64))
        known = self.weights.setdefault(loss, found)
        apart = float(np.abs(found - known).max() / np.abs(known).max())
        return apart, len(np.unique(marks)) == 1

    def _used(self) -> ActiveColumns:
        """Return the active columns of all ranks, as the solver uses them."""
        empty = SGDState.initial(self.rows.features, np.float32, Penalty()).model
        return ActiveColumns.of(self.comm, self.rows, empty)

    def _row(self, laps: _Laps, sums: str, features: int) -> dict[str, Any]:
        ranks = self.comm.size
        steps = laps.sums[0].calls

        def median(values: list[float]) -> float:
            return statistics.median(values) / steps

        counted = median([s.nbytes for s in laps.sums])
        nbytes = {
            "sparse": counted,
            "dense": dense_bytes(features, ranks),
            "dense of used columns": dense_bytes(features, ranks),
            "single master": 4.0 * features * (ranks - 1),
        }[sums]
        chosen = max(self.comm.stats.allreduces.items(), key=lambda kind: kind[1].measured)
        given, result = (
            statistics.median(getattr(s, name) for s in laps.sums)
            for name in ("given", "result")
        )
        workload = Workload(features, 4, (round(given),) * ranks)
        return {
            "data": self.data.name,
            "ranks": ranks,
            "features": features,
            "batch": self.data.batch(ranks),
            "steps": steps,
            "full_pass": self.data.full_pass(ranks),
            "algorithm": chosen[0] if sums == "sparse" else None,
            "step": median(laps.seconds),
            "communicating": median([s.communicating for s in laps.sums]),
            "processors": median([s.processors for s in laps.sums]),
            "bytes": nbytes,
            "bound": nbytes / self.link,
            "given": given,
            "result": result,
            "least": lower_bound(workload, result_nnz=result).nbytes / self.link,
        }


def _wide(weights: NDArray[Any], used: ActiveColumns | None) -> NDArray[Any]:
    if used is None:
        return weights
    wide = np.zeros(used.features, weights.dtype)
    wide[used.columns] = weights
    return wide


class _Laps:
    """Times of each epoch after the first."""

    def __init__(self, comm: Communicator, timed: Timed) -> None:
        self.comm, self.timed = comm, timed
        self.seconds: list[float] = []
        self.sums: list[Summary] = []
        self.weights: NDArray[Any] = np.empty(0)
        self.start: float | None = None

    def end(self, _: SolverProgress, state: SGDState) -> None:
        """Record an epoch; the solver calls it."""
        end, found = self.comm.now(), self.timed.summary()
        if self.start is None:
            self.weights = state.weights.copy()
        else:
            # The clock is that of the machine, the same for all ranks.
            both = np.max(self.comm.allgather(np.array([self.start, end])), axis=0)
            self.seconds.append(float(both[1] - both[0]))
            self.sums.append(found)
        self.comm.barrier()
        self.start = self.comm.now()
