"""What the ranks of a job say about their end, in the order in which it happened."""

import contextlib
import json
import os
import selectors
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

GONE = 5.0  # seconds for the ranks of a killed launcher to die


class Reports:
    """A named pipe that every rank writes to, and a watch over who has it open."""

    def __init__(self, ranks: int) -> None:
        self.path = str(Path(tempfile.mkdtemp(prefix="sparcml-"), "reports"))
        os.mkfifo(self.path)
        self._ranks = ranks
        self._rows: list[dict[str, Any]] = []
        self._rest = b""
        self._vanished: int | None = None
        self._greeted = 0
        self._read = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        # Held so that the pipe's end is reached only when we say so.
        self._write = os.open(self.path, os.O_WRONLY)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._read, selectors.EVENT_READ)

    def fileno(self) -> int:
        """Readable when there is news."""
        return self._selector.fileno()

    def receive(self) -> bool:
        """Take in what has come; true, for there may be more."""
        lost = [k for k, _ in self._selector.select(0) if k.fd != self._read]
        with contextlib.suppress(BlockingIOError):
            data = self._rest + os.read(self._read, 1 << 16)
            *lines, self._rest = data.split(b"\n")
            for line in lines:
                self._take(json.loads(line))
        ended = {row["rank"] for row in self._rows if row["ended"]}
        for key in lost:
            self._selector.unregister(key.fd)
            os.close(key.fd)
            # epoll lists them as they died; the launcher kills the rest right after.
            if self._vanished is None and key.data not in ended:
                self._vanished = key.data
        return True

    def _take(self, row: dict[str, Any]) -> None:
        if "pid" not in row:
            self._rows.append(row)
            return
        with contextlib.suppress(OSError, AttributeError):  # gone, or no pidfd here
            fd = os.pidfd_open(row["pid"])
            self._selector.register(fd, selectors.EVENT_READ, row["rank"])
        self._greeted += 1
        if self._greeted == self._ranks:
            # Everyone has it open: no name, nothing to leave behind.
            shutil.rmtree(Path(self.path).parent, ignore_errors=True)

    @property
    def all_ended(self) -> bool:
        """Whether every rank has reported its end."""
        return len([r for r in self._rows if r["ended"]]) == self._ranks

    def first_failure(self) -> dict[str, Any] | None:
        """The earliest report of a failure."""
        failures = [row for row in self._rows if row["code"]]
        return min(failures, key=lambda row: int(row["time"]), default=None)

    def vanished(self) -> dict[str, Any] | None:
        """The first rank whose supervisor died without a word."""
        if self._vanished is None:
            return None
        code = 128 + signal.SIGKILL
        return {
            "rank": self._vanished,
            "how": "was killed from outside",
            "code": code,
        }

    def close(self) -> None:
        """Wait for the pipe's end: every rank holds it open until it is dead."""
        os.close(self._write)
        deadline = time.monotonic() + GONE
        while time.monotonic() < deadline:
            try:
                if not os.read(self._read, 1 << 16):
                    break
            except BlockingIOError:
                time.sleep(0.01)
        for key in list(self._selector.get_map().values()):
            os.close(key.fd)
        self._selector.close()
        shutil.rmtree(Path(self.path).parent, ignore_errors=True)
