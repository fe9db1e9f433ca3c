"""What two strands of one rank can wait for: `threading.Condition`, or the like of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType


class Condition(Protocol):
    """The part of `threading.Condition` that requests use."""

    def __enter__(self) -> Any: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        """Until the predicate is true, or the time is up; what it was last."""

    def notify_all(self) -> None:
        """Something has changed."""
