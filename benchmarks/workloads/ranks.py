"""Ranks as threads that count what a dense allreduce of the engine would have sent.

Between threads that one passes references, and no byte: counted is what halving and doubling
sends, 2 (P - 1) / P of the vector from each rank.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from sparcml import Communicator
from sparcml.transport import ThreadTransport, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

T = TypeVar("T")
TIMEOUT = 120.0  # seconds; all ranks share the cores of one machine


class Counted(ThreadTransport):
    """One rank."""

    native_bytes = 0

    def native_allreduce(self, array: NDArray[Any], op: str) -> NDArray[Any]:
        """As it is, and counted."""
        self.native_bytes += 2 * (self.size - 1) * array.nbytes // self.size
        return super().native_allreduce(array, op)


def launch(body: Callable[[Communicator], T], ranks: int) -> tuple[list[T], int]:
    """What each rank returned, and the bytes that all of them sent.

    `auto` chooses as it would on machines behind 1 Gbit/s, not as on threads.
    """
    team = World(ranks)
    links = [Counted(team, rank, TIMEOUT) for rank in range(ranks)]
    comms = [Communicator(link) for link in links]

    def guarded(rank: int) -> T:
        try:
            return body(comms[rank])
        except BaseException as error:
            links[rank].abort(error)  # so that the others do not wait for it
            raise

    with ThreadPoolExecutor(ranks) as pool:
        results = list(pool.map(guarded, range(ranks)))
    sent = sum(comm.stats.bytes for comm in comms)
    return results, sent + sum(link.native_bytes for link in links)
