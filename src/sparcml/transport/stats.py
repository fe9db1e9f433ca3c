"""Statistics of one rank: messages, bytes, seconds per phase, predicted and measured times."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from .timeline import EventArgs, Timeline

    Table = list[tuple[str, ...]]  # the first row is the head

PHASES = ("select", "encode", "send", "wait", "decode", "add")


@dataclass
class Prediction:
    """Predicted and measured seconds of all calls of one algorithm."""

    calls: int = 0
    predicted: float = 0.0
    measured: float = 0.0


@dataclass
class Stats:
    """Traffic and time of one rank since the start or the last `reset`.

    Attributes:
        messages: Messages sent.
        bytes: Bytes sent.
        received_messages: Messages received.
        received_bytes: Bytes received.
        native_bytes: Bytes of the engine's own allreduce, which reports none: those that a
            ring sends.
        seconds: Seconds per phase.
        allreduces: Predicted and measured seconds by algorithm.
        sent: The peer and the bytes of each message sent. Recorded if it is a list.
        trace: The timeline that receives events, if there is one.
        clock: Clock of the phases.
    """

    messages: int = 0
    bytes: int = 0
    received_messages: int = 0
    received_bytes: int = 0
    native_bytes: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PHASES, 0.0))
    allreduces: dict[str, Prediction] = field(default_factory=dict)
    sent: list[tuple[int, int]] | None = None
    trace: Timeline | None = field(default=None, repr=False)
    clock: Callable[[], float] = field(default=time.perf_counter, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __str__(self) -> str:
        return "\n\n".join(map(text_table, self._tables()))

    def _repr_html_(self) -> str:
        return "\n".join(map(html_table, self._tables()))

    def _tables(self) -> list[Table]:
        traffic: Table = [
            ("", "messages", "bytes"),
            ("sent", f"{self.messages:,}", f"{self.bytes:,}"),
            ("received", f"{self.received_messages:,}", f"{self.received_bytes:,}"),
        ]
        if self.native_bytes:
            traffic.append(("native", "", f"{self.native_bytes:,}"))
        phases: Table = [("phase", "seconds")]
        phases += [(name, f"{seconds:.6f}") for name, seconds in self.seconds.items()]
        calls: Table = [("allreduce", "calls", "predicted (s)", "measured (s)")]
        calls += [
            (name, f"{p.calls:,}", f"{p.predicted:.6f}", f"{p.measured:.6f}")
            for name, p in self.allreduces.items()
        ]
        return [traffic, phases, calls] if self.allreduces else [traffic, phases]

    def count_sent(self, peer: int, nbytes: int) -> None:
        """Count one message sent."""
        with self._lock:  # another thread counts the messages of requests
            self.messages += 1
            self.bytes += nbytes
            if self.sent is not None:
                self.sent.append((peer, nbytes))

    def count_received(self, nbytes: int) -> None:
        """Count one message received."""
        with self._lock:
            self.received_messages += 1
            self.received_bytes += nbytes

    def count_compiled(self, counts: tuple[Any, ...]) -> None:
        """Count the messages and phases of a compiled collective, see `MessageLoop`."""
        _, messages, sent, got_messages, got, encode, send, wait, decode, add, _ = counts
        with self._lock:
            self.messages += messages
            self.bytes += sent
            self.received_messages += got_messages
            self.received_bytes += got
            seconds = self.seconds
            seconds["encode"] += encode
            seconds["send"] += send
            seconds["wait"] += wait
            seconds["decode"] += decode
            seconds["add"] += add

    def count_native(self, nbytes: int) -> None:
        """Count the bytes of an allreduce of the engine."""
        with self._lock:
            self.native_bytes += nbytes

    def count_allreduce(self, algorithm: str, predicted: float, measured: float) -> None:
        """Count one allreduce and its seconds."""
        with self._lock:
            prediction = self.allreduces.get(algorithm)
            if prediction is None:
                prediction = self.allreduces[algorithm] = Prediction()
            prediction.calls += 1
            prediction.predicted += predicted
            prediction.measured += measured

    def reset(self) -> None:
        """Set all counters to zero."""
        self.messages = self.bytes = self.received_messages = self.received_bytes = 0
        self.native_bytes = 0
        self.seconds = dict.fromkeys(PHASES, 0.0)
        self.allreduces = {}
        if self.sent is not None:
            self.sent = []

    def phase(self, name: str, **args: int | None) -> _Phase:
        """Return a context that times its body; `args` describe it in the trace."""
        return _Phase(self, name, args)

    def count_phase(self, name: str, start: float, end: float, args: EventArgs) -> None:
        """Count the seconds of a phase and add it to the trace."""
        with self._lock:
            self.seconds[name] += end - start
        trace = self.trace  # another thread may end it
        if trace is not None:
            trace.add(name, start, end, args)


class _Phase:
    """Context of one phase.

    A generator would cost four times as much, and every message has several phases.
    """

    __slots__ = ("_args", "_name", "_start", "_stats")

    def __init__(self, stats: Stats, name: str, args: EventArgs) -> None:
        self._stats, self._name, self._args = stats, name, args

    def __enter__(self) -> EventArgs:
        self._start = self._stats.clock()
        return self._args

    def __exit__(self, *error: object) -> None:
        end = self._stats.clock()
        self._stats.count_phase(self._name, self._start, end, self._args)


def text_table(table: Table) -> str:
    """Return a table as text; the first column is left-aligned, the others right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = []
    for name, *cells in table:
        padded = [c.rjust(width) for c, width in zip(cells, widths[1:], strict=True)]
        lines.append("  ".join([name.ljust(widths[0]), *padded]).rstrip())
    return "\n".join(lines)


def html_table(table: Table) -> str:
    """Return a table as HTML; the first row is the head."""
    head, *rows = table
    lines = [_html_row("th", head), *(_html_row("td", row) for row in rows)]
    return "<table>\n" + "\n".join(lines) + "\n</table>"


def _html_row(tag: str, cells: tuple[str, ...]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(c)}</{tag}>" for c in cells) + "</tr>"
