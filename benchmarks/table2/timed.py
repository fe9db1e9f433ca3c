"""A communicator that notes when a rank comes to a collective, and when it leaves.

All ranks are processes of one machine with one clock. What the last rank to come and the
last to leave have between them is communication; what comes before is computing, in which
ranks wait for each other's cores.
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
    """As the communicator it is made of, for solvers.

    Args:
        comm: The ranks.
        size: Of the vectors that are noted, and all sums of streams are, for solvers may
            leave out columns; others, such as losses, pass.
        plain: If given, dense sums go through its single master, and allgathers of noted
            vectors are dense.
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

    def allgather(self, x: Any) -> Any:
        """As the communicator's."""
        if not isinstance(x, Stream) or x.size != self._size:
            return self._comm.allgather(x)
        before = self._now()
        if self._plain is None:
            parts = self._comm.allgather(x)
        else:
            dense = self._plain.allgather(x.to_dense())
            parts = [Stream.unchecked(x.size, None, part) for part in dense]
        self._note(before, x.nnz, sum(part.nnz for part in parts))
        return parts

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
        """Of all ranks, and forget it; a collective call."""
        mine = np.array(self.notes, np.float64)
        self.notes = []
        everyone = np.stack(self._comm.allgather(mine.ravel()))
        return Summary.of(everyone.reshape(self._comm.size, -1, len(FIELDS)))


@dataclass(frozen=True)
class Summary:
    """Collectives of all ranks, one after the other.

    Attributes:
        calls: How many.
        communicating: Seconds from the last rank's coming to the last one's leaving, summed.
        processors: Seconds that all ranks computed in them, by the cores they share.
        nbytes: That the busiest rank sent or received, counted where we send them.
        given: Entries that a rank brought to a call, on average.
        result: Entries of what all got, on average.
    """

    calls: int
    communicating: float
    processors: float
    nbytes: float
    given: float
    result: float

    @classmethod
    def of(cls, notes: NDArray[np.float64]) -> Summary:
        """From the notes of each rank."""
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
