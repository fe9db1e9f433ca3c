"""Trace files: the events of all ranks in one file, for Perfetto and chrome://tracing.

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
import time
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ..transport import bootstrap
from .timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..transport.base import Transport

TAIL = b"\n]}\n"  # ends a file that is valid JSON

_runs: dict[Path, tuple[str, float]] = {}  # files of this process: run, time zero


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
