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
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .timeline import Timeline
from .tracefile import append

if TYPE_CHECKING:
    from .base import Transport

_zeros: dict[Path, tuple[str, float]] = {}  # files of this process: run, zero of the clock


class Trace(Timeline):
    """The events of one rank, on their way to a file."""

    def __init__(self, transport: Transport, path: str | Path, *, add: bool) -> None:
        self._path = Path(path).absolute()
        if not self._path.parent.is_dir():
            raise FileNotFoundError(f"trace: no folder {str(self._path.parent)!r}")
        self._run, zero = _meet(transport, _zeros.get(self._path) if add else None)
        _zeros[self._path] = self._run, zero
        super().__init__(transport, zero)
        atexit.register(self.write)

    def close(self, transport: Transport) -> None:
        """Write, and do so for the last time if the trace began on this transport."""
        self.write()
        if transport is self._owner:
            atexit.unregister(self.write)

    def write(self) -> None:
        """Add to the file what has happened since the last time."""
        if lines := self.taken():
            text = [json.dumps(line) for line in lines]
            append(self._path, self._run, text, self._owner.timeout)


def _meet(transport: Transport, known: tuple[str, float] | None) -> tuple[str, float]:
    """The run that all ranks agree on, and zero of this machine's clock."""
    transport.barrier()
    run, zero = known or ("", transport.now())
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
