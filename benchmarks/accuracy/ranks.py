"""RankPool: persistent thread ranks that aggregate gradients.

The engine's own allreduce passes references between threads, and no bytes: it is counted as
halving and doubling, 2 (P - 1) / P of the vector per rank.
"""

from __future__ import annotations

import inspect
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from workloads.ranks import TIMEOUT

from sparcml import Communicator
from sparcml.transport import ThreadGroup, ThreadTransport

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from numpy.typing import NDArray

    from sparcml import Method
    from sparcml.aggregate import State

    Arrays = dict[str, NDArray[np.float32]]

COMPARED = 100  # ranks compare their results once in this number of steps


class RankPool:
    """Thread ranks of one process.

    `auto` selects algorithms as for links of 1 Gbit/s, not as for threads.

    Args:
        ranks: World size.

    Attributes:
        ranks: World size.
    """

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        group = ThreadGroup(ranks)
        self._comms = [
            Communicator(ThreadTransport(group, rank, TIMEOUT)) for rank in range(ranks)
        ]
        self._threads = ThreadPoolExecutor(ranks)
        self._steps = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._threads.shutdown()

    @property
    def bytes_sent(self) -> float:
        """Bytes sent since the start, mean over ranks."""
        sent = [comm.stats.bytes for comm in self._comms]
        return sum(sent) / self.ranks

    def aggregate(
        self,
        method: Method,
        gradients: Sequence[Arrays],
        states: Sequence[State],
        lr: float | Mapping[str, float] | None = None,
    ) -> tuple[Arrays, list[State]]:
        """Aggregate the gradients of all ranks, on all ranks at once.

        Args:
            method: Aggregation method.
            gradients: Gradients by name, of each rank; they may be overwritten.
            states: State of each rank.
            lr: Learning rate, for methods that use it.

        Returns:
            The result of rank 0, and the new states.

        Raises:
            RuntimeError: If the ranks have different results.
        """
        options: dict[str, Any] = {"overwrite": True}
        if "lr" in inspect.signature(method.aggregate).parameters:
            options["lr"] = lr

        def body(rank: int) -> tuple[Arrays, State]:
            return method.aggregate(
                self._comms[rank], gradients[rank], states[rank], **options
            )

        results = list(self._threads.map(body, range(self.ranks)))
        if self._steps % COMPARED == 0:
            check_identical([result for result, _ in results])
        self._steps += 1
        return results[0][0], [state for _, state in results]


def check_identical(results: Sequence[Arrays]) -> None:
    """Raise a RuntimeError unless the results of all ranks are equal, bit for bit."""
    for rank, result in enumerate(results):
        for name, array in result.items():
            if not np.array_equal(array, results[0][name], equal_nan=True):
                raise RuntimeError(
                    f"aggregate: ranks must have equal results, got different values of "
                    f"{name!r} on rank 0 and rank {rank}"
                )
