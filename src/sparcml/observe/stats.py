"""Statistics of one rank: messages, bytes, seconds per phase, predicted and measured times."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..kernels import _core
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
class Counts:
    """What `Stats` counts."""

    messages: int = 0
    bytes: int = 0
    received_messages: int = 0
    received_bytes: int = 0
    computed_bytes: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PHASES, 0.0))
    allreduces: dict[str, Prediction] = field(default_factory=dict)


@dataclass(repr=False)
class Stats:
    """Traffic and time of one rank since the start or the last `reset`.

    Attributes:
        sent: The peer and the bytes of each message sent. Recorded if it is a list.
        trace: The timeline that receives events, if there is one.
        clock: Clock of the phases.
        sources: Functions that return what compiled calls have counted since the last time,
            or None. They are called when something is read.
    """

    sent: list[tuple[int, int]] | None = None
    trace: Timeline | None = None
    clock: Callable[[], float] = time.perf_counter
    sources: list[Callable[[], _core.CallCounters | None]] = field(default_factory=list)
    _counts: Counts = field(default_factory=Counts)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __repr__(self) -> str:
        return repr(self._read()).replace("Counts", "Stats", 1)

    @property
    def messages(self) -> int:
        """Messages sent."""
        return self._read().messages

    @property
    def bytes(self) -> int:
        """Bytes sent, with those of the engine's own allreduce, which are computed."""
        return self._read().bytes

    @property
    def received_messages(self) -> int:
        """Messages received."""
        return self._read().received_messages

    @property
    def received_bytes(self) -> int:
        """Bytes received, with those of the engine's own allreduce, which are computed."""
        return self._read().received_bytes

    @property
    def computed_bytes(self) -> int:
        """Part of `bytes`, and of `received_bytes`, that is computed and not counted.

        An engine does not report what its own allreduce sends. It follows from the engine's
        algorithm, see `native_nbytes`.
        """
        return self._read().computed_bytes

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds per phase."""
        return self._read().seconds

    @property
    def allreduces(self) -> dict[str, Prediction]:
        """Predicted and measured seconds by algorithm."""
        return self._read().allreduces

    def _read(self) -> Counts:
        """Return the counts, with those of the compiled calls since the last time."""
        for source in self.sources:
            counted = source()
            if counted is not None:
                self.count_compiled(counted)
        return self._counts

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
        if self.computed_bytes:
            traffic.append(("of both, computed", "", f"{self.computed_bytes:,}"))
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
            self._counts.messages += 1
            self._counts.bytes += nbytes
            if self.sent is not None:
                self.sent.append((peer, nbytes))

    def count_received(self, nbytes: int) -> None:
        """Count one message received."""
        with self._lock:
            self._counts.received_messages += 1
            self._counts.received_bytes += nbytes

    def count_compiled(self, counted: _core.CallCounters) -> None:
        """Count what compiled calls have counted."""
        with self._lock:
            counts = self._counts
            counts.messages += counted.messages
            counts.bytes += counted.bytes
            counts.received_messages += counted.received_messages
            counts.received_bytes += counted.received_bytes
            for phase, seconds in counted.seconds.items():
                counts.seconds[phase] += seconds
        for algorithm, calls, predicted, measured in counted.allreduces:
            self.count_allreduce(algorithm, predicted, measured, calls)

    def count_native(self, nbytes: int) -> None:
        """Count the computed bytes of an allreduce of the engine, as sent and as received."""
        with self._lock:
            self._counts.bytes += nbytes
            self._counts.received_bytes += nbytes
            self._counts.computed_bytes += nbytes

    def count_allreduce(
        self, algorithm: str, predicted: float, measured: float, calls: int = 1
    ) -> None:
        """Count allreduces and their seconds."""
        with self._lock:
            allreduces = self._counts.allreduces
            prediction = allreduces.get(algorithm)
            if prediction is None:
                prediction = allreduces[algorithm] = Prediction()
            prediction.calls += calls
            prediction.predicted += predicted
            prediction.measured += measured

    def reset(self) -> None:
        """Set all counters to zero."""
        self._read()
        with self._lock:
            self._counts = Counts()
        if self.sent is not None:
            self.sent = []

    def phase(self, name: str, **args: int | None) -> _Phase:
        """Return a context that times its body; `args` describe it in the trace."""
        return _Phase(self, name, args)

    def count_phase(self, name: str, start: float, end: float, args: EventArgs) -> None:
        """Count the seconds of a phase and add it to the trace."""
        with self._lock:
            self._counts.seconds[name] += end - start
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
