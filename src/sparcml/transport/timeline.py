"""The events of one rank, and how Perfetto and chrome://tracing want them written.

A call is a bar, what is done in it lies below, and arrows lead from a send to the wait
that it ends.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .base import Transport

About = dict[str, Any]


class Event(NamedTuple):
    """Something that a task has done."""

    name: str
    start: float
    end: float
    task: int
    about: About


@dataclass
class Span:
    """What one task is in the middle of."""

    name: str
    transport: Transport
    label: str
    start: float
    about: About = field(default_factory=dict)
    messages: Counter[tuple[str, int]] = field(default_factory=Counter)


class Timeline:
    """The events of one rank, in all its tasks: the caller, and what it has started."""

    def __init__(self, transport: Transport, zero: float = 0.0) -> None:
        self._owner = transport
        self._rank = transport.global_ranks[transport.rank]
        self._zero = zero
        self._events: list[Event] = []
        self._calls: dict[int, Span] = {}  # by task
        self._tasks: dict[int, tuple[int, str]] = {}  # number and name
        self._named = 0  # tasks whose name has been given out
        self._computations = 0
        self._lock = threading.Lock()

    def begin(self, name: str, transport: Transport) -> Span:
        """This task enters a call."""
        call = Span(name, transport, transport.operation, self._owner.now())
        self._calls[self._owner.task()[0]] = call
        return call

    def end(self, call: Span) -> None:
        """This task leaves it, well or not."""
        self.add(call.name, call.start, self._owner.now(), call.about)
        self._calls.pop(self._owner.task()[0], None)

    def add(self, name: str, start: float, end: float, about: About) -> None:
        """Something that this task has done."""
        task, progress = self._owner.task()
        if task not in self._tasks:
            with self._lock:
                kind = "progress" if progress else "caller"
                self._tasks[task] = len(self._tasks), kind
        call = self._calls.get(task)
        if call is not None:
            about["call"] = call.label
            if "peer" in about:
                about["peer"] = call.transport.global_ranks[about["peer"]]
            if name in ("send", "wait") and about.get("bytes"):
                about["flow"] = self._flow(call, name, about["peer"])
        self._events.append(Event(name, start, end, task, about))

    def computed(self, start: float, end: float) -> None:
        """The program itself was at work."""
        self._computations += 1
        self.add("compute", start, end, {"call": f"compute #{self._computations}"})

    def _flow(self, call: Span, name: str, peer: int) -> int:
        """The same number at both ends of a message: between two ranks they keep order."""
        call.messages[name, peer] += 1
        ends = (self._rank, peer) if name == "send" else (peer, self._rank)
        count = call.messages[name, peer]
        text = f"{call.transport.channel} {call.label} {ends} {count}"
        return int.from_bytes(blake2b(text.encode(), digest_size=6).digest(), "little")

    def close(self, transport: Transport) -> None:
        """This transport is done with; the trace is over if it began there."""

    def taken(self) -> list[dict[str, Any]]:
        """What has happened since the last time, as the viewers want it."""
        with self._lock:
            events = self._events[:]
            del self._events[: len(events)]
            return [*self._names(), *(x for e in events for x in self._lines(e))]

    def _names(self) -> Iterator[dict[str, Any]]:
        rank = self._rank
        if not self._named:
            yield _meta("process_name", rank, 0, name=f"rank {rank}")
            yield _meta("process_sort_index", rank, 0, sort_index=rank)
        known = list(self._tasks.values())
        for number, name in known[self._named :]:
            yield _meta("thread_name", rank, number, name=name)
        self._named = len(known)

    def _lines(self, event: Event) -> Iterator[dict[str, Any]]:
        """An event as the viewers want it, and the end of an arrow if it is one."""
        args = {k: v for k, v in event.about.items() if v is not None and k != "flow"}
        ts = round((event.start - self._zero) * 1e6, 3)
        dur = round((event.end - event.start) * 1e6, 3)
        place = {"pid": self._rank, "tid": self._tasks[event.task][0]}
        yield {"name": event.name, "ph": "X", **place, "ts": ts, "dur": dur, "args": args}
        if "flow" not in event.about:
            return
        arrow = {"name": "message", "cat": "message", "id": event.about["flow"], **place}
        if event.name == "send":
            yield {**arrow, "ph": "s", "ts": ts}
        else:  # just before the end, where the viewers still see the event around it
            yield {**arrow, "ph": "f", "bp": "e", "ts": round(ts + max(0, dur - 1e-3), 3)}


def _meta(what: str, rank: int, task: int, **args: Any) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": rank, "tid": task, "args": args}
