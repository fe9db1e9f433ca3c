"""What two tasks of one rank can wait for: `threading.Condition`, or the like of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from .clock import Clock, Task


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


class VirtualCondition:
    """As `threading.Condition`, for tasks."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: list[Task] = []

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        """Until the predicate is true, or the time is up; what it was last."""
        clock = self._clock
        end = float("inf") if timeout is None else clock.now + timeout
        while not (result := predicate()) and clock.now < end:
            self._waiting.append(clock.current)
            if timeout is not None:  # an event, as it may be all that will happen
                clock.at(end, self.notify_all)
            clock.block(float("inf"))
        return result

    def notify_all(self) -> None:
        """Something has changed."""
        waiting, self._waiting = self._waiting, []
        for task in waiting:
            self._clock.wake(task)
