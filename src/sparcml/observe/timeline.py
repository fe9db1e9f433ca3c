"""Events of one rank, in the format of Perfetto and chrome://tracing.

A call is shown as a bar with its phases below. An arrow leads from each send to the wait
that receives its message. A trace is the timelines of all ranks in one file.

Ranks communicate once, when a trace begins: they meet at a barrier, take its end as time
zero, and agree on an identifier of the run. Afterwards each rank appends its own events
to the file when it closes, so a failed rank delays no other.

Ranks on one machine read the same clock. Time zero of a machine is the moment when its
first rank left the barrier, so clocks of two machines differ by at most one latency.
"""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import secrets
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from ..transport import bootstrap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..transport.base import Transport


EventArgs = dict[str, Any]

TAIL = b"\n]}\n"  # ends a file that is valid JSON

_runs: dict[Path, tuple[str, float]] = {}  # files of this process: run, time zero


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


class Trace(Timeline):
    """The events of one rank, appended to a file."""

    def __init__(self, transport: Transport, path: str | Path, *, add: bool) -> None:
        self._path = Path(path).absolute()
        if not self._path.parent.is_dir():
            raise FileNotFoundError(
                f"trace: folder {str(self._path.parent)!r} does not exist; create it first"
            )
        self._run, zero = _agree_on_run(transport, _runs.get(self._path) if add else None)
        _runs[self._path] = self._run, zero
        super().__init__(transport, zero)
        atexit.register(self.write)

    def close(self, transport: Transport) -> None:
        """Write the events; the trace ends with the transport it began on."""
        self.write()
        if transport is self._owner:
            atexit.unregister(self.write)

    def write(self) -> None:
        """Append the events since the last call to the file."""
        if records := self.drain():
            lines = [json.dumps(record) for record in records]
            _append(self._path, self._run, lines, self._owner.timeouts.silent)


def _agree_on_run(
    transport: Transport, previous: tuple[str, float] | None
) -> tuple[str, float]:
    """Return the identifier of the run and time zero of this machine. Collective."""
    transport.barrier()
    run, zero = previous or ("", transport.now())
    clock = bootstrap.this_machine().clock
    runs: list[str] = []
    zeros: dict[str, float] = {}
    for block in bootstrap.gather(transport, json.dumps([run, clock, zero]).encode()):
        other_run, machine, other_zero = json.loads(block)
        runs.append(other_run)
        zeros[machine] = min(other_zero, zeros.get(machine, other_zero))
    run = max(runs, default="") or secrets.token_hex(8)
    answer = bootstrap.broadcast(transport, json.dumps([run, zeros]).encode())
    run, zeros = json.loads(answer)
    return run, zeros[clock]


def _append(path: Path, run: str, events: Sequence[str], timeout: float) -> None:
    """Append events to the file of a run, replacing the contents of an earlier run.

    The file is valid JSON whenever no process is writing: a writer replaces the closing
    bracket under a lock, which the system releases if the process dies.
    """
    head = f'{{"otherData": {{"run": "{run}"}}, "traceEvents": [\n'.encode()
    body = ",\n".join(events).encode()
    path.touch()
    with path.open("r+b") as file, _locked(file, path, timeout):
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        same_run = file.read(len(head)) == head
        file.seek(max(0, size - len(TAIL)))
        if same_run and file.read() == TAIL:
            file.seek(size - len(TAIL))
            file.write(b",\n" + body + TAIL)
        else:
            file.truncate(0)
            file.seek(0)
            file.write(head + body + TAIL)
        file.flush()


@contextmanager
def _locked(file: IO[bytes], path: Path, timeout: float) -> Iterator[None]:
    deadline = time.monotonic() + timeout
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"trace: {str(path)!r} has been locked by another process for "
                    f"{timeout:g} s"
                ) from None
            time.sleep(0.005)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)
