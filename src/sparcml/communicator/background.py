"""The calls that go on while the caller computes: started here, by communicators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from ..stream.convert import vector_type
from .arguments import check_reduction
from .requests import RequestQueue, unchanged

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..quantize import Quantizer
    from .requests import Request


class Background(ABC):
    """The non-blocking half of a communicator."""

    _helper: tuple[Any, RequestQueue] | None = None  # a communicator, and who works on it

    @abstractmethod
    def _open_helper(self) -> tuple[Any, RequestQueue]:
        """A duplicate of this communicator, and who works on it."""

    def iallreduce(
        self,
        x: Any,
        op: str = "sum",
        algorithm: str = "auto",
        quantize: Quantizer | None = None,
        *,
        return_seen: bool = False,
    ) -> Request:
        """Start an allreduce and go on; `wait` gives its result.

        Any number may be outstanding. They are completed in the order of their calls by
        a thread of their own, on a duplicate of this communicator (made by the first such
        call, which therefore waits for all ranks).
        """
        check_reduction(op, algorithm, quantize, return_seen=return_seen)

        def work(comm: Any) -> Any:
            return comm.allreduce(x, op, algorithm, quantize, return_seen=return_seen)

        return self._submit("iallreduce", x, work)

    def iallgather(self, x: Any) -> Request:
        """Start an allgather and go on; `wait` gives the list."""
        return self._submit("iallgather", x, lambda c: c.allgather(x))

    def ireduce_scatter(self, x: Any, op: str = "sum") -> Request:
        """Start a reduce_scatter and go on; `wait` gives this rank's range."""
        check_reduction(op)
        return self._submit("ireduce_scatter", x, lambda c: c.reduce_scatter(x, op))

    def _submit(self, name: str, x: Any, work: Callable[[Any], Any]) -> Request:
        vector_type(x)  # refuse what is no vector here, not at `wait`
        if self._helper is None:
            self._helper = self._open_helper()
        helper, progress = self._helper
        return progress.submit(name, unchanged(name, x, lambda: work(helper)))

    def _tell_helper(self, name: str, work: Callable[[Any], Any]) -> None:
        """Have it do something in its turn among the requests: the same on all ranks."""
        if self._helper is not None:
            helper, progress = self._helper
            progress.submit(name, lambda: work(helper))

    def _close_helper(self) -> None:
        if self._helper is not None:
            helper, progress = self._helper
            progress.close()
            helper.close()
