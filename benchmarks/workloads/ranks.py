"""Thread ranks, and the bytes that they send.

The engine's own allreduce passes references between threads, and no bytes: it is counted as
halving and doubling, 2 (P - 1) / P of the vector per rank.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from sparcml import Communicator
from sparcml.transport import ThreadGroup, ThreadTransport

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
TIMEOUT = 120.0  # seconds; all ranks share the cores of one machine


def launch(body: Callable[[Communicator], T], ranks: int) -> tuple[list[T], int]:
    """Return the results of all ranks, and the bytes that they sent.

    `auto` chooses as for links of 1 Gbit/s, not as for threads.
    """
    team = ThreadGroup(ranks)
    links = [ThreadTransport(team, rank, TIMEOUT) for rank in range(ranks)]
    comms = [Communicator(link) for link in links]

    def guarded(rank: int) -> T:
        try:
            return body(comms[rank])
        except BaseException as error:
            links[rank].abort(error)  # so that the others do not wait for it
            raise

    with ThreadPoolExecutor(ranks) as pool:
        results = list(pool.map(guarded, range(ranks)))
    return results, sum(comm.stats.bytes for comm in comms)
