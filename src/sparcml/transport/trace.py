"""When each rank did what: events that Perfetto and chrome://tracing show.

Nothing crosses between ranks but once, when a trace begins: they meet at a barrier, take
its end for the same instant, and agree on the run that the file belongs to. From then on
each rank keeps its own events, and adds them to the file when it closes; a rank that
has failed therefore holds nobody up.

Ranks on one machine read the same clock. Zero on each machine is when its first rank left
the barrier, so machines are apart by the delay of one message at most.
"""

from __future__ import annotations

import atexit
import json
import platform
import secrets
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .tracefile import append

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .base import Transport

About = dict[str, Any]

_zeros: dict[Path, tuple[str, float]] = {}  # files of this process: run, zero of the clock


class _Event(NamedTuple):
    name: str
    start: float
    end: float
    thread: int
    about: About


@dataclass
class Span:
    """What one thread is in the middle of."""

    name: str
    transport: Transport
    label: str
    start: float
    about: About = field(default_factory=dict)
    messages: Counter[tuple[str, int]] = field(default_factory=Counter)


class Trace:
    """The events of one rank, in all its threads."""

    def __init__(self, transport: Transport, path: str | Path, *, add: bool) -> None:
        self._path = Path(path).absolute()
        if not self._path.parent.is_dir():
            raise FileNotFoundError(f"trace: no folder {str(self._path.parent)!r}")
        self._owner = transport
        self._rank = transport.labels[transport.rank]
        self._run, self._zero = _meet(transport, _zeros.get(self._path) if add else None)
        _zeros[self._path] = self._run, self._zero
        self._events: list[_Event] = []
        self._calls: dict[int, Span] = {}  # by thread
        self._threads: dict[int, tuple[int, str]] = {}  # number and name
        self._named = 0  # threads whose name is in the file
        self._lock = threading.Lock()
        atexit.register(self.write)

    def begin(self, name: str, transport: Transport) -> Span:
        """This thread enters a call."""
        call = Span(name, transport, transport.operation, time.perf_counter())
        self._calls[threading.get_ident()] = call
        return call

    def end(self, call: Span) -> None:
        """This thread leaves it, well or not."""
        self.add(call.name, call.start, time.perf_counter(), call.about)
        self._calls.pop(threading.get_ident(), None)

    def add(self, name: str, start: float, end: float, about: About) -> None:
        """Something that this thread has done."""
        thread = threading.get_ident()
        if thread not in self._threads:
            progress = threading.current_thread().name == "sparcml progress"
            with self._lock:
                kind = "progress" if progress else "caller"
                self._threads[thread] = len(self._threads), kind
        call = self._calls.get(thread)
        if call is not None:
            about["call"] = call.label
            if "peer" in about:
                about["peer"] = call.transport.labels[about["peer"]]
            if name in ("send", "wait") and about.get("bytes"):
                about["flow"] = self._flow(call, name, about["peer"])
        self._events.append(_Event(name, start, end, thread, about))

    def _flow(self, call: Span, name: str, peer: int) -> int:
        """The same number at both ends of a message: between two ranks they keep order."""
        call.messages[name, peer] += 1
        ends = (self._rank, peer) if name == "send" else (peer, self._rank)
        count = call.messages[name, peer]
        text = f"{call.transport.channel} {call.label} {ends} {count}"
        return int.from_bytes(blake2b(text.encode(), digest_size=6).digest(), "little")

    def close(self, transport: Transport) -> None:
        """Write, and do so for the last time if the trace began on this transport."""
        self.write()
        if transport is self._owner:
            atexit.unregister(self.write)

    def write(self) -> None:
        """Add to the file what has happened since the last time."""
        with self._lock:
            events = self._events[:]
            del self._events[: len(events)]
            lines = [*self._names(), *(x for e in events for x in self._lines(e))]
            if lines:
                text = [json.dumps(line) for line in lines]
                append(self._path, self._run, text, self._owner.timeout)

    def _names(self) -> Iterator[dict[str, Any]]:
        rank = self._rank
        if not self._named:
            yield _meta("process_name", rank, 0, name=f"rank {rank}")
            yield _meta("process_sort_index", rank, 0, sort_index=rank)
        known = list(self._threads.values())
        for number, name in known[self._named :]:
            yield _meta("thread_name", rank, number, name=name)
        self._named = len(known)

    def _lines(self, event: _Event) -> Iterator[dict[str, Any]]:
        """An event as the viewers want it, and the end of an arrow if it is one."""
        args = {k: v for k, v in event.about.items() if v is not None and k != "flow"}
        ts = round((event.start - self._zero) * 1e6, 3)
        dur = round((event.end - event.start) * 1e6, 3)
        place = {"pid": self._rank, "tid": self._threads[event.thread][0]}
        yield {"name": event.name, "ph": "X", **place, "ts": ts, "dur": dur, "args": args}
        if "flow" not in event.about:
            return
        arrow = {"name": "message", "cat": "message", "id": event.about["flow"], **place}
        if event.name == "send":
            yield {**arrow, "ph": "s", "ts": ts}
        else:  # just before the end, where the viewers still see the event around it
            yield {**arrow, "ph": "f", "bp": "e", "ts": round(ts + max(0, dur - 1e-3), 3)}


def _meta(what: str, rank: int, thread: int, **args: Any) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": rank, "tid": thread, "args": args}


def _meet(transport: Transport, known: tuple[str, float] | None) -> tuple[str, float]:
    """The run that all ranks agree on, and zero of this machine's clock."""
    transport.barrier()
    run, zero = known or ("", time.perf_counter())
    here = _machine()
    mine = [run, here, zero]
    if transport.rank:
        transport.send(0, _packed(mine))
        run, zero = _unpacked(transport.receive(0))
        return run, zero
    others = range(1, transport.size)
    everyone = [mine, *(_unpacked(transport.receive(peer)) for peer in others)]
    run = max(run for run, _, _ in everyone) or secrets.token_hex(8)
    zeros: dict[str, float] = {}
    for _, machine, zero in everyone:
        zeros[machine] = min(zero, zeros.get(machine, zero))
    for peer in others:
        transport.send(peer, _packed([run, zeros[everyone[peer][1]]]))
    return run, zeros[here]


def _machine() -> str:
    """What has one monotonic clock."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return boot.read_text().strip() if boot.exists() else platform.node()


def _packed(fields: list[Any]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.frombuffer(json.dumps(fields).encode(), np.uint8)


def _unpacked(message: np.ndarray[Any, np.dtype[np.uint8]]) -> Any:
    return json.loads(message.tobytes())
