"""Virtual time: greenlets that wait, and events in the order of their times.

One task runs at a time, until it waits; then the earliest event is next, and of events
at the same time the one that was planned first. Nothing depends on real time, so two runs
of the same program do the same things in the same order.
"""

from __future__ import annotations

from contextvars import copy_context
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

import greenlet

if TYPE_CHECKING:
    from collections.abc import Callable

ROOM = 4096  # limits of waits that are over may lie around, if they are no more than this


class SimulationEnded(BaseException):
    """The simulation has ended, and with it whatever still waits."""


class Task:
    """Something that runs: the program of a rank, or what it has started beside it."""

    def __init__(self, clock: Clock, number: int, work: Callable[[], None]) -> None:
        self.number = number
        self.progress = False
        self.blocked = False
        self.waits = 0  # how often it has been blocked: tells one wait from the next
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
        """Go on until it waits again; called from the loop of the clock alone."""
        self._clock.current = self
        self._greenlet.switch()

    def end(self) -> None:
        """Have it leave whatever it is in, if it has begun."""
        if self._greenlet:
            self._greenlet.throw(SimulationEnded)


class Clock:
    """Seconds since the start, and what happens when."""

    def __init__(self) -> None:
        self.now = 0.0
        self.current: Task
        self.tasks: set[Task] = set()  # that have not ended
        self._born = 0
        self._planned = 0
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._limits: list[tuple[float, int, Task, int]] = []  # of waits
        self.hub = greenlet.getcurrent()  # who calls `run`
        self._over = False

    def spawn(self, work: Callable[[], None]) -> Task:
        """Something that begins now, once whoever runs waits."""
        task = Task(self, self._born, work)
        self._born += 1
        self.tasks.add(task)
        self.at(self.now, task.resume)
        return task

    def at(self, when: float, action: Callable[[], object]) -> None:
        """Plan an event; the action itself must not wait."""
        self._planned += 1
        heappush(self._events, (when, self._planned, action))

    def sleep_until(self, when: float) -> None:
        """Whoever runs goes on at that time; nothing wakes it before."""
        if when <= self.now:
            return
        if self._nothing_until(when):
            self.now = when
            return
        self.at(when, self.current.resume)
        self._wait()

    def block(self, limit: float) -> None:
        """Whoever runs waits until it is woken, at the limit at the latest."""
        task = self.current
        task.blocked = True
        task.waits += 1
        if limit < float("inf"):
            self._planned += 1
            heappush(self._limits, (limit, self._planned, task, task.waits))
            if len(self._limits) > ROOM + 2 * len(self.tasks):
                self._limits = [e for e in self._limits if _stands(*e)]
                heapify(self._limits)
        self._wait()

    def wake(self, task: Task) -> None:
        """Let a task that is blocked go on."""
        if task.blocked:
            task.blocked = False
            self.at(self.now, task.resume)

    def wake_at(self, when: float, task: Task) -> None:
        """The same at a later time, if it still waits for the same thing then."""
        waits = task.waits

        def rouse() -> None:
            if task.blocked and task.waits == waits:
                task.blocked = False
                task.resume()

        self.at(when, rouse)

    def run(self, until: Callable[[], bool], stuck: Callable[[], None]) -> None:
        """Let time pass.

        Args:
            until: Whether all is done; what still waits is then ended.
            stuck: Called when all wait and nothing is on its way; wakes somebody.
        """
        try:
            while not until():
                if not self._events:
                    stuck()
                self._next()
        finally:
            self._over = True
            for task in sorted(self.tasks, key=lambda s: s.number):
                self.current = task
                task.end()

    def _next(self) -> None:
        limits = self._limits
        while limits and not _stands(*limits[0]):
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
        if self._over:
            raise SimulationEnded
        self.hub.switch()


def _stands(when: float, planned: int, task: Task, waits: int) -> bool:
    """Whether the wait that this limit belongs to is not over yet."""
    del when, planned
    return task.blocked and task.waits == waits
