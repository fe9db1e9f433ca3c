"""A running job: its output, its reports, and its certain end."""

import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

from sparcml.cli import rank
from sparcml.cli.launcher import Launcher
from sparcml.cli.noise import Pump

QUIET = 0.2  # seconds without output after which nothing more is on its way
GONE = 5.0  # seconds for the ranks of a killed launcher to die
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Job:
    """Ranks under a launcher, from start to the last one's end."""

    def __init__(self, launcher: Launcher, ranks: int, target: list[str]) -> None:
        self.ranks = ranks
        self.verdict = ""
        self.reports: list[dict[str, Any]] = []
        self._pending = b""
        self._stops: list[tuple[int, float]] = []  # signals to us, and when
        self._folder = tempfile.mkdtemp(prefix="sparcml-")
        self._pipe = str(Path(self._folder, "reports"))
        os.mkfifo(self._pipe)
        self._read = os.open(self._pipe, os.O_RDONLY | os.O_NONBLOCK)
        # Held so that the pipe's end is reached only when we say so.
        self._write = os.open(self._pipe, os.O_WRONLY)
        self._program = [sys.executable, "-u", rank.__file__, self._pipe, *target]
        self._launcher = launcher

    def __enter__(self) -> Self:
        self._handlers = [(s, signal.signal(s, self._on_stop)) for s in _STOPS]
        self._process = subprocess.Popen(
            self._launcher.command(self.ranks, self._program),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            process_group=0,  # a terminal's Ctrl-C comes to us alone
            preexec_fn=rank.die_with_parent,  # noqa: PLW1509 - no threads here
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._pumps = [
            Pump(self._process.stdout.fileno(), 1),
            Pump(self._process.stderr.fileno(), 2),
        ]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, _ in self._handlers:
            signal.signal(number, signal.SIG_IGN)
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        self._await_ranks()
        shutil.rmtree(self._folder, ignore_errors=True)
        for number, handler in self._handlers:
            signal.signal(number, handler)

    def wait(self) -> int:
        """Pass output on until the job is over; give the code to exit with."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._read, selectors.EVENT_READ, self._receive)
            for pump in self._pumps:
                selector.register(pump.source, selectors.EVENT_READ, pump.move)
            self._watch(selector)
        for pump in self._pumps:
            pump.flush()
        if self._stops:
            number = signal.Signals(self._stops[0][0])
            self.verdict = f"stopped by {number.name}"
            return 128 + number
        return self._judge()

    def _on_stop(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._stops.append((number, time.monotonic()))
        if len(self._stops) == 1:
            Path(self._pipe).unlink(missing_ok=True)  # supervisors need not linger
            with contextlib.suppress(AttributeError, ProcessLookupError):
                self._process.send_signal(number)

    def _watch(self, selector: selectors.BaseSelector) -> None:
        heard = time.monotonic()
        while time.monotonic() < self._deadline(heard):
            ready = selector.select(QUIET / 2)
            for key, _ in ready:
                if not key.data():
                    selector.unregister(key.fd)
            if ready:
                heard = time.monotonic()
            elif self._process.poll() is not None:
                return
            else:
                for pump in self._pumps:
                    pump.flush()
            if not any(pump.open for pump in self._pumps):
                return

    def _deadline(self, heard: float) -> float:
        """When to end the job: a rank failed, or someone wants it stopped."""
        if self._stops:
            return self._stops[0][1] + rank.GRACE if len(self._stops) == 1 else 0.0
        failures = [int(r["time"]) for r in self.reports if r["code"]]
        if not failures:
            return float("inf")
        if sum(r["ended"] for r in self.reports) == self.ranks:
            return heard + QUIET
        return time.monotonic() + rank.GRACE - (time.time_ns() - min(failures)) / 1e9

    def _receive(self) -> bool:
        with contextlib.suppress(BlockingIOError):
            *lines, self._pending = (
                self._pending + os.read(self._read, 1 << 16)
            ).split(b"\n")
            self.reports += [json.loads(line) for line in lines]
        return True

    def _judge(self) -> int:
        self._receive()
        failures = [r for r in self.reports if r["code"]]
        if failures:
            first = min(failures, key=lambda r: int(r["time"]))
            self.verdict = f"rank {first['rank']} {first['how']}"
            return int(first["code"])
        code = self._process.wait(GONE)
        aborted = next((pump.aborted for pump in self._pumps if pump.aborted), "")
        if code and aborted:
            self.verdict = f"rank {aborted} called MPI_Abort with code {code}"
        elif code:
            self.verdict = f"mpiexec {rank.describe(code)}, and no rank said why"
        return code if code >= 0 else 128 - code

    def _await_ranks(self) -> None:
        """Wait for the pipe's end: every rank holds it open until it is dead."""
        os.close(self._write)
        deadline = time.monotonic() + GONE
        while time.monotonic() < deadline:
            try:
                if not os.read(self._read, 1 << 16):
                    break
            except BlockingIOError:
                time.sleep(0.01)
        os.close(self._read)
