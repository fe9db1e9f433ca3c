"""Runner of a function on all ranks of this process, for `launch` and `simulate`."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from ..transport import ThreadGroup, ThreadTransport
from ..transport.control import abort_message

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..transport import Transport
    from ..transport.timeouts import Timeouts
    from .communicator import Communicator

T = TypeVar("T")
JOIN_SECONDS = 2.0  # beyond the timeout, for ranks to end after another has failed


class Failure(NamedTuple):
    """The exception of a rank, and whether this rank was the first to raise."""

    rank: int
    error: BaseException
    is_origin: bool


class RankRunner(Generic[T]):
    """Results and failures of fn(comm) on each rank.

    Args:
        fn: The program of each rank.
        ranks: Number of ranks.
    """

    def __init__(self, fn: Callable[[Communicator], T], ranks: int) -> None:
        self._fn = fn
        self._ranks = ranks
        self._results: dict[int, T] = {}
        self.failures: list[Failure] = []  # in the order in which they happened

    def run(self, transport: Transport, comm: Communicator) -> None:
        """Run the program of one rank; a failure ends the other ranks too."""
        rank = transport.rank
        try:
            self._results[rank] = self._fn(comm)
        except BaseException as error:
            transport.abort(error)
            self.failures.append(Failure(rank, error, transport.control.is_origin))
        finally:
            transport.leave()
            comm.close()

    def results(self, engine: str) -> list[T]:
        """Return the results by rank, or raise the first failure."""
        if self.failures:
            # Other ranks only report the failure of the first.
            failure = next((f for f in self.failures if f.is_origin), self.failures[0])
            failure.error.add_note(f"on rank {failure.rank} of {self._ranks} ({engine})")
            raise failure.error
        return [self._results[rank] for rank in range(self._ranks)]


def run_on_threads(
    fn: Callable[[Communicator], T],
    ranks: int,
    open_communicator: Callable[[Transport], Communicator],
    timeouts: Timeouts,
) -> list[T]:
    """Run fn(comm) on threads of this process; return the results by rank."""
    group = ThreadGroup(ranks)
    runner = RankRunner(fn, ranks)

    def body(rank: int) -> None:
        transport = ThreadTransport(group, rank, timeouts)
        runner.run(transport, open_communicator(transport))

    threads = [
        threading.Thread(target=partial(body, r), name=f"rank {r}", daemon=True)
        for r in range(ranks)
    ]
    for thread in threads:
        thread.start()
    try:
        _join(threads, runner, timeouts.silent)
    except BaseException as error:  # such as KeyboardInterrupt
        text = f"the job was interrupted by {type(error).__name__}"
        group.broadcast_control(abort_message(text))
        runner.failures.append(Failure(0, error, True))
        _join(threads, runner, 0.0)
        raise
    return runner.results("threads")


def _join(threads: list[threading.Thread], runner: RankRunner[T], timeout: float) -> None:
    """Wait for all threads; after a failure, abandon those that do not end in time."""
    deadline = None
    while any(thread.is_alive() for thread in threads):
        for thread in threads:
            thread.join(0.02)
        if runner.failures and deadline is None:
            deadline = time.monotonic() + timeout + JOIN_SECONDS
        if deadline is not None and time.monotonic() > deadline:
            return
