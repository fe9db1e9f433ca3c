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

from sparcml.transport import shared_memory

EXIT_SECONDS = 5.0  # for the ranks to end after their launcher is killed
# A rank that notices another's death may report before the supervisor of the dead rank
# does. The launcher kills the other ranks later than this.
CAUSE_SECONDS = 2.0
ABORT_SECONDS = 0.5  # between the kills that follow MPI_Abort and the news of it
NOTICED = "TransportError"  # in the report of a rank that lost another
EXITED = "exited with code"  # in the report of a rank that called `sys.exit`
KILL_SIGNALS = (signal.SIGKILL, signal.SIGTERM)  # of launchers


class ExitReports:
    """A pipe that every rank writes to, and a watch on the ranks' processes.

    Args:
        ranks: Number of ranks.
        named: Use a named pipe: a process in another user namespace may not open the files of
            this one.

    Attributes:
        path: Name by which other processes of this machine open the pipe.
    """

    def __init__(self, ranks: int, *, named: bool = False) -> None:
        self._folder = ""
        self._read, self._write = os.pipe()
        self.path = f"/proc/{os.getpid()}/fd/{self._write}"
        if named or not Path(self.path).exists():  # the latter: not Linux
            self._open_named()
        os.set_blocking(self._read, False)
        self._ranks = ranks
        self._reports: list[dict[str, Any]] = []
        self._partial_line = b""
        self._segments: set[Path] = set()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._read, selectors.EVENT_READ)

    def _open_named(self) -> None:
        for fd in (self._read, self._write):
            os.close(fd)
        self._folder = tempfile.mkdtemp(prefix="sparcml-")
        self.path = str(Path(self._folder, "reports"))
        os.mkfifo(self.path)
        self._read = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        # Held open, so that the pipe does not end before `close`.
        self._write = os.open(self.path, os.O_WRONLY)

    def fileno(self) -> int:
        """Return a file descriptor that is readable when there are reports."""
        return self._selector.fileno()

    def receive(self) -> bool:
        """Read the available reports; return True, because more may follow."""
        dead = [k for k, _ in self._selector.select(0) if k.fd != self._read]
        failed = self.first_failure() is not None
        with contextlib.suppress(BlockingIOError):
            data = self._partial_line + os.read(self._read, 1 << 16)
            *lines, self._partial_line = data.split(b"\n")
            for line in lines:
                self._add(json.loads(line))
        for key in dead:
            self._selector.unregister(key.fd)
            os.close(key.fd)
            self._add_dead(key.data[0])
        if not failed and self.first_failure() is not None:
            self._find_segments()
        return True

    def _add(self, report: dict[str, Any]) -> None:
        if "pid" not in report:
            self._reports.append(report)
            return
        with contextlib.suppress(OSError, AttributeError):  # ended, or no pidfd here
            fd = os.pidfd_open(report["pid"])
            data = (report["rank"], report["pid"])
            self._selector.register(fd, selectors.EVENT_READ, data)

    def _add_dead(self, rank: int) -> None:
        """Add a report for a rank whose supervisor has died, unless it has reported."""
        # epoll lists processes as they died; the launcher kills the others afterwards.
        if any(
            (r["rank"] == rank and r["ended"]) or r.get("outside") for r in self._reports
        ):
            return
        self._reports.append({
            "rank": rank,
            "time": time.time_ns(),
            "how": "was killed from outside",
            "code": 128 + signal.SIGKILL,
            "signal": signal.SIGKILL,
            "ended": True,
            "outside": True,
        })  # fmt: skip

    def _find_segments(self) -> None:
        """Remember the shared memory of the ranks, which nobody frees if they are killed."""
        for key in self._selector.get_map().values():
            if key.data is not None:
                for child in _children(key.data[1]):
                    self._segments |= shared_memory.segments(child)

    @property
    def all_ended(self) -> bool:
        """Whether every rank has reported its end."""
        return len({r["rank"] for r in self._reports if r["ended"]}) == self._ranks

    def first_failure(self, aborted: float | None = None) -> dict[str, Any] | None:
        """Return the report of the failure that caused the others, or None.

        A rank that was killed by a signal outranks those that only noticed, and so does one
        that called `sys.exit`. If a rank has called MPI_Abort, the kills by the launcher are
        disregarded.

        Args:
            aborted: Time of the MPI_Abort, in seconds as `time.time`; None: no call.
        """
        limit = float("inf") if aborted is None else (aborted - ABORT_SECONDS) * 1e9
        failures = [
            r
            for r in sorted(self._reports, key=lambda r: int(r["time"]))
            if r["code"] and not (r["signal"] in KILL_SIGNALS and r["time"] > limit)
        ]
        # Later reports of a rank are consequences, such as its own alarm.
        first: dict[int, dict[str, Any]] = {}
        for report in failures:
            if report["time"] - failures[0]["time"] > CAUSE_SECONDS * 1e9:
                break
            first.setdefault(report["rank"], report)
        killed = [r for r in first.values() if r["signal"]]
        # A launcher ends the others with SIGTERM at once when a supervisor is killed.
        killed.sort(key=lambda r: bool(r["signal"] == signal.SIGTERM))
        causes = killed
        if failures and NOTICED in failures[0]["how"]:  # then another rank is the cause
            causes = killed or [r for r in first.values() if r["how"].startswith(EXITED)]
        failure = next(iter(causes or failures), None)
        return None if failure is None else self._abrupt_end(failure) or failure

    def _abrupt_end(self, failure: dict[str, Any]) -> dict[str, Any] | None:
        """Return the report of a rank that left without an error shortly before a failure."""
        for report in self._reports:
            before = failure["time"] - report["time"]
            if report.get("abrupt") and 0 <= before <= CAUSE_SECONDS * 1e9:
                return {**report, "code": 1}
        return None

    def kill_ranks(self) -> None:
        """Kill all ranks, so that the launcher ends by itself and removes its files."""
        self._find_segments()
        for key in list(self._selector.get_map().values()):
            if key.data is None:
                continue
            pid = key.data[1]
            with contextlib.suppress(OSError):
                if os.getpgid(pid) == pid:
                    os.killpg(pid, signal.SIGKILL)
                else:
                    os.kill(pid, signal.SIGKILL)

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
        shared_memory.unlink(self._segments)
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:  # ended, or not Linux
        return []
    return [int(child) for child in text.split()]
