"""One file for the events of many processes: whole JSON whenever nobody is writing.

Each writer takes the closing bracket off, adds its lines and closes again, under a lock
that the system takes back from a process that dies.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

TAIL = b"\n]}\n"


def append(path: Path, run: str, events: Sequence[str], timeout: float) -> None:
    """Add events to the file of a run; what another run has left there goes."""
    head = f'{{"otherData": {{"run": "{run}"}}, "traceEvents": [\n'.encode()
    body = ",\n".join(events).encode()
    path.touch()
    with path.open("r+b") as file, _locked(file, path, timeout):
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        ours = file.read(len(head)) == head
        file.seek(max(0, size - len(TAIL)))
        if ours and file.read() == TAIL:
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
                    f"trace: another process has held {str(path)!r} for {timeout:g} s"
                ) from None
            time.sleep(0.005)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)
