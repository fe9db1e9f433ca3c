"""Events of one rank, in the format of Perfetto and chrome://tracing.

A call is shown as a bar with its phases below. An arrow leads from each send to the wait
that receives its message.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..transport.base import Transport

EventArgs = dict[str, Any]


class Event(NamedTuple):
    """One completed activity of a task."""

    name: str
    start: float
    end: float
    task: int
    args: EventArgs


@dataclass
class Span:
    """The call that a task is in."""

    name: str
    transport: Transport
    label: str
    start: float
    args: EventArgs = field(default_factory=dict)
    messages: Counter[tuple[str, int]] = field(default_factory=Counter)


class Timeline:
    """The events of one rank, of all its tasks: the caller's and those it has started."""

    def __init__(self, transport: Transport, zero: float = 0.0) -> None:
        self._owner = transport
        self._rank = transport.global_ranks[transport.rank]
        self._zero = zero
        self._events: list[Event] = []
        self._calls: dict[int, Span] = {}  # by task
        self._tasks: dict[int, tuple[int, str]] = {}  # number and name
        self._named = 0  # tasks whose names have been written
        self._computations = 0
        self._lock = threading.Lock()

    def begin(self, name: str, transport: Transport) -> Span:
        """Record that the current task enters a call."""
        call = Span(name, transport, transport.operation, self._owner.now())
        self._calls[self._owner.task()[0]] = call
        return call

    def end(self, call: Span) -> None:
        """Record that the current task leaves a call, with or without an error."""
        self.add(call.name, call.start, self._owner.now(), call.args)
        self._calls.pop(self._owner.task()[0], None)

    def add(self, name: str, start: float, end: float, args: EventArgs) -> None:
        """Add an event of the current task."""
        task, is_background = self._owner.task()
        if task not in self._tasks:
            with self._lock:
                task_name = "progress" if is_background else "caller"
                self._tasks[task] = len(self._tasks), task_name
        call = self._calls.get(task)
        if call is not None:
            args["call"] = call.label
            if "peer" in args:
                args["peer"] = call.transport.global_ranks[args["peer"]]
            if name in ("send", "wait") and args.get("bytes"):
                args["flow"] = self._flow(call, name, args["peer"])
        self._events.append(Event(name, start, end, task, args))

    def add_compute(self, start: float, end: float) -> None:
        """Add an event of the user's program."""
        self._computations += 1
        self.add("compute", start, end, {"call": f"compute #{self._computations}"})

    def _flow(self, call: Span, name: str, peer: int) -> int:
        """Return a number that is the same at both ends of a message.

        Messages between two ranks arrive in order, so that counting them suffices.
        """
        call.messages[name, peer] += 1
        ends = (self._rank, peer) if name == "send" else (peer, self._rank)
        count = call.messages[name, peer]
        text = f"{call.transport.channel_id} {call.label} {ends} {count}"
        return int.from_bytes(blake2b(text.encode(), digest_size=6).digest(), "little")

    def close(self, transport: Transport) -> None:
        """End the use by a transport; the timeline ends with the transport it began on."""

    def drain(self) -> list[dict[str, Any]]:
        """Return the events since the last call, as trace viewers read them."""
        with self._lock:
            events = self._events[:]
            del self._events[: len(events)]
            return [*self._names(), *(x for e in events for x in self._records(e))]

    def _names(self) -> Iterator[dict[str, Any]]:
        rank = self._rank
        if not self._named:
            yield _metadata("process_name", rank, 0, name=f"rank {rank}")
            yield _metadata("process_sort_index", rank, 0, sort_index=rank)
        tasks = list(self._tasks.values())
        for number, name in tasks[self._named :]:
            yield _metadata("thread_name", rank, number, name=name)
        self._named = len(tasks)

    def _records(self, event: Event) -> Iterator[dict[str, Any]]:
        """Yield the record of an event, and that of an arrow if one starts or ends here."""
        args = {k: v for k, v in event.args.items() if v is not None and k != "flow"}
        # Both ends are rounded to nanoseconds, so that adjacent events do not overlap.
        start, end = (round((t - self._zero) * 1e9) for t in (event.start, event.end))
        ts, dur = start / 1000, (end - start) / 1000
        ids = {"pid": self._rank, "tid": self._tasks[event.task][0]}
        yield {"name": event.name, "ph": "X", **ids, "ts": ts, "dur": dur, "args": args}
        if "flow" not in event.args:
            return
        arrow = {"name": "message", "cat": "message", "id": event.args["flow"], **ids}
        if event.name == "send":
            yield {**arrow, "ph": "s", "ts": ts}
        else:  # just before the end, where viewers still find the enclosing event
            yield {**arrow, "ph": "f", "bp": "e", "ts": round(ts + max(0, dur - 1e-3), 3)}


def _metadata(record: str, rank: int, task: int, **args: Any) -> dict[str, Any]:
    return {"name": record, "ph": "M", "pid": rank, "tid": task, "args": args}
