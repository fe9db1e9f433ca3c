"""A communicator that records when a rank enters and leaves a collective.

All ranks are processes of one machine with one clock. The time from the last rank that enters
to the last rank that leaves is communication; the time before is computing, in which ranks
share cores.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcml import Stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sparcml import Communicator

    from .baselines import Plain

FIELDS = ("came", "left", "processor", "sent", "received", "given", "result")


class Timed:
    """A communicator that records times, for solvers.

    Args:
        comm: Communicator.
        size: Size of the vectors to record. Streams are always recorded, since solvers may
            omit columns; other vectors, such as losses, are not.
        plain: If given, dense allreduces use its single master, and what is gathered is
            dense.
    """

    def __init__(self, comm: Communicator, size: int, plain: Plain | None = None) -> None:
        self._comm, self._size, self._plain = comm, size, plain
        self.notes: list[list[float]] = []  # one a call, in the order of FIELDS

    def __getattr__(self, name: str) -> Any:
        return getattr(self._comm, name)

    def allreduce(self, x: Any, *args: Any, **options: Any) -> Any:
        """As the communicator's."""
        if not (isinstance(x, Stream) or x.size == self._size) or "op" in options:
            return self._comm.allreduce(x, *args, **options)
        before = self._now()
        if self._plain is None:
            total = self._comm.allreduce(x, *args, **options)
        else:
            total = self._plain.single_master(x)
        self._note(before, _stored(x), _stored(total))
        return total

    def _allgather_add(self, x: Stream, out: NDArray[Any]) -> None:
        """As the communicator's."""
        before = self._now()
        if self._plain is None:
            self._comm._allgather_add(x, out)
        else:
            for part in self._plain.allgather(x.to_dense()):
                out += part
        self._note(before, x.nnz, x.size)

    def _now(self) -> tuple[float, float, int, int]:
        stats = self._comm.stats
        now, used = self._comm.now(), time.process_time()
        return now, used, stats.bytes, stats.received_bytes

    def _note(self, before: tuple[float, float, int, int], given: int, result: int) -> None:
        came, used, sent, received = before
        left, now_used, now_sent, now_received = self._now()
        counts = (now_used - used, now_sent - sent, now_received - received, given, result)
        self.notes.append([came, left, *map(float, counts)])

    def summary(self) -> Summary:
        """Return the records of all ranks and clear them. Collective."""
        mine = np.array(self.notes, np.float64)
        self.notes = []
        everyone = np.stack(self._comm.allgather(mine.ravel()))
        return Summary.of(everyone.reshape(self._comm.size, -1, len(FIELDS)))


@dataclass(frozen=True)
class Summary:
    """Collectives of all ranks.

    Attributes:
        calls: Number of calls.
        communicating: Sum of seconds from the last rank's entry to the last rank's exit.
        processors: CPU seconds of all ranks in them, divided by the cores.
        nbytes: Bytes sent or received by the busiest rank, where we count them.
        given: Mean nnz of a rank's input.
        result: Mean nnz of the results.
    """

    calls: int
    communicating: float
    processors: float
    nbytes: float
    given: float
    result: float

    @classmethod
    def of(cls, notes: NDArray[np.float64]) -> Summary:
        """Combine the records of all ranks."""
        came, left, used, sent, received, given, result = np.moveaxis(notes, 2, 0)
        cores = min(len(os.sched_getaffinity(0)), len(notes))
        return cls(
            notes.shape[1],
            float((left.max(0) - came.max(0)).sum()),
            float(used.sum() / cores),
            float(max(sent.sum(1).max(), received.sum(1).max())),
            float(given.mean()),
            float(result.mean()),
        )


def _stored(x: Any) -> int:
    return x.nnz if isinstance(x, Stream) else x.size
