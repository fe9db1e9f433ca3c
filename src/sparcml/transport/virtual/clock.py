"""Virtual time: greenlets that wait, and events in the order of their times.

One task runs at a time, until it waits. The earliest event is next; of two events at the
same time, the one that was scheduled first. Nothing depends on real time, so two runs of
the same program do the same things in the same order.
"""

from __future__ import annotations

from contextvars import copy_context
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any

import greenlet

if TYPE_CHECKING:
    from collections.abc import Callable

STALE_LIMITS = 4096  # limits of ended waits that may remain, beside two per task


class SimulationEnded(BaseException):
    """Raised in tasks that still wait when the simulation ends."""


class Task:
    """A greenlet: the program of a rank, or a function that it has started.

    Attributes:
        number: Order of creation.
        is_background: Whether a rank has started it.
        blocked: Whether it waits to be woken.
        waits: Number of its waits so far, which distinguishes one wait from the next.
    """

    def __init__(self, clock: Clock, number: int, work: Callable[[], None]) -> None:
        self.number = number
        self.is_background = False
        self.blocked = False
        self.waits = 0
        self._clock = clock
        self._work = work
        self._greenlet = greenlet.greenlet(self._body, parent=clock.hub)
        self._greenlet.gr_context = copy_context()

    def _body(self) -> None:
        try:
            self._work()
        except SimulationEnded:
            pass
        finally:
            self._clock.tasks.discard(self)

    def resume(self) -> None:
        """Run until the next wait; called by the clock's loop alone."""
        self._clock.current = self
        self._greenlet.switch()

    def end(self) -> None:
        """Raise `SimulationEnded` in the task if it has started."""
        if self._greenlet:
            self._greenlet.throw(SimulationEnded)


class Clock:
    """A virtual clock and its scheduled events.

    Attributes:
        now: Seconds since the start.
        current: The running task.
        tasks: Tasks that have not ended.
        hub: The greenlet that calls `run`.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.current: Task
        self.tasks: set[Task] = set()
        self.hub = greenlet.getcurrent()
        self._created = 0  # tasks
        self._scheduled = 0  # events
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._limits: list[tuple[float, int, Task, int]] = []  # of waits
        self._ended = False

    def spawn(self, work: Callable[[], None]) -> Task:
        """Create a task that starts now, when the current task waits."""
        task = Task(self, self._created, work)
        self._created += 1
        self.tasks.add(task)
        self.at(self.now, task.resume)
        return task

    def at(self, when: float, action: Callable[[], object]) -> None:
        """Schedule an action, which must not wait itself."""
        self._scheduled += 1
        heappush(self._events, (when, self._scheduled, action))

    def sleep_until(self, when: float) -> None:
        """Suspend the current task until that time."""
        if when <= self.now:
            return
        if self._nothing_until(when):
            self.now = when
            return
        self.at(when, self.current.resume)
        self._wait()

    def block(self, limit: float) -> None:
        """Suspend the current task until it is woken, or until the limit."""
        task = self.current
        task.blocked = True
        task.waits += 1
        if limit < float("inf"):
            self._scheduled += 1
            heappush(self._limits, (limit, self._scheduled, task, task.waits))
            if len(self._limits) > STALE_LIMITS + 2 * len(self.tasks):
                self._limits = [e for e in self._limits if _is_waiting(*e)]
                heapify(self._limits)
        self._wait()

    def wake(self, task: Task) -> None:
        """Resume a blocked task now."""
        if task.blocked:
            task.blocked = False
            self.at(self.now, task.resume)

    def wake_at(self, when: float, task: Task) -> None:
        """Resume a blocked task at that time, if it is still in the same wait."""
        waits = task.waits

        def wake() -> None:
            if task.blocked and task.waits == waits:
                task.blocked = False
                task.resume()

        self.at(when, wake)

    def run(self, until: Callable[[], bool], stuck: Callable[[], None]) -> None:
        """Process events.

        Args:
            until: Returns whether the simulation is complete; waiting tasks then end.
            stuck: Called when all tasks wait and no event is scheduled; wakes a task.
        """
        try:
            while not until():
                if not self._events:
                    stuck()
                self._next()
        finally:
            self._ended = True
            for task in sorted(self.tasks, key=lambda t: t.number):
                self.current = task
                task.end()

    def _next(self) -> None:
        limits = self._limits
        while limits and not _is_waiting(*limits[0]):
            heappop(limits)
        if limits and limits[0][0] < self._events[0][0]:
            self.now, _, task, _ = heappop(limits)
            self.wake(task)
        else:
            self.now, _, action = heappop(self._events)
            action()

    def _nothing_until(self, when: float) -> bool:
        return not (
            (self._events and self._events[0][0] <= when)
            or (self._limits and self._limits[0][0] <= when)
        )

    def _wait(self) -> None:
        if self._ended:
            raise SimulationEnded
        self.hub.switch()


def _is_waiting(when: float, number: int, task: Task, waits: int) -> bool:
    """Return whether the wait that this limit belongs to has not ended yet."""
    del when, number
    return task.blocked and task.waits == waits


class VirtualCondition:
    """`threading.Condition` for tasks."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: list[Task] = []

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        """Wait until the predicate is true or the time is up; return its last value."""
        clock = self._clock
        end = float("inf") if timeout is None else clock.now + timeout
        while not (result := predicate()) and clock.now < end:
            self._waiting.append(clock.current)
            if timeout is not None:  # an event, since it may be the only one
                clock.at(end, self.notify_all)
            clock.block(float("inf"))
        return result

    def notify_all(self) -> None:
        """Wake all waiting tasks."""
        waiting, self._waiting = self._waiting, []
        for task in waiting:
            self._clock.wake(task)
