"""Reports of the ranks about their exit, in the order in which they ended."""

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

EXIT_SECONDS = 5.0  # for the ranks to end after their launcher is killed


class ExitReports:
    """A named pipe that every rank writes to, and a watch on the ranks' processes."""

    def __init__(self, ranks: int) -> None:
        self.path = str(Path(tempfile.mkdtemp(prefix="sparcml-"), "reports"))
        os.mkfifo(self.path)
        self._ranks = ranks
        self._reports: list[dict[str, Any]] = []
        self._partial_line = b""
        self._killed_rank: int | None = None
        self._started = 0
        self._read = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        # Held open, so that the pipe does not end before `close`.
        self._write = os.open(self.path, os.O_WRONLY)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._read, selectors.EVENT_READ)

    def fileno(self) -> int:
        """Return a file descriptor that is readable when there are reports."""
        return self._selector.fileno()

    def receive(self) -> bool:
        """Read the available reports; return True, because more may follow."""
        dead = [k for k, _ in self._selector.select(0) if k.fd != self._read]
        with contextlib.suppress(BlockingIOError):
            data = self._partial_line + os.read(self._read, 1 << 16)
            *lines, self._partial_line = data.split(b"\n")
            for line in lines:
                self._add(json.loads(line))
        ended = {row["rank"] for row in self._reports if row["ended"]}
        for key in dead:
            self._selector.unregister(key.fd)
            os.close(key.fd)
            # epoll lists processes as they died; the launcher kills the others afterwards.
            if self._killed_rank is None and key.data not in ended:
                self._killed_rank = key.data
        return True

    def _add(self, report: dict[str, Any]) -> None:
        if "pid" not in report:
            self._reports.append(report)
            return
        with contextlib.suppress(OSError, AttributeError):  # ended, or no pidfd here
            fd = os.pidfd_open(report["pid"])
            self._selector.register(fd, selectors.EVENT_READ, report["rank"])
        self._started += 1
        if self._started == self._ranks:
            # All ranks have opened the pipe: remove its name, so that none is left behind.
            shutil.rmtree(Path(self.path).parent, ignore_errors=True)

    @property
    def all_ended(self) -> bool:
        """Whether every rank has reported its end."""
        return len([r for r in self._reports if r["ended"]]) == self._ranks

    def first_failure(self) -> dict[str, Any] | None:
        """Return the earliest report of a failure, or None."""
        failures = [report for report in self._reports if report["code"]]
        return min(failures, key=lambda report: int(report["time"]), default=None)

    def first_killed(self) -> dict[str, Any] | None:
        """Return a report for the first rank that was killed without reporting, or None."""
        if self._killed_rank is None:
            return None
        code = 128 + signal.SIGKILL
        return {"rank": self._killed_rank, "how": "was killed from outside", "code": code}

    def close(self) -> None:
        """Wait for the end of the pipe, which every rank holds open until it is dead."""
        os.close(self._write)
        deadline = time.monotonic() + EXIT_SECONDS
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
