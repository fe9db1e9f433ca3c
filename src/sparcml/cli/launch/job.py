"""A running job: its output, its reports, and its certain end."""

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import Self

from sparcml.cli.launch import rank_process
from sparcml.cli.launch.exit_reports import GONE, Reports
from sparcml.cli.launch.launcher import Launcher
from sparcml.cli.launch.launcher_output import Pump

QUIET = 0.2  # seconds without output after which nothing more is on its way
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SIGNALS = (signal.SIGKILL, signal.SIGTERM)  # what hydra exits with if a rank is killed
_KILLED = tuple(128 + number for number in _SIGNALS)


@dataclass(frozen=True)
class Place:
    """Where the ranks run: what precedes their command, and their environment."""

    prefix: list[str] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)


class Job:
    """Ranks under a launcher, from start to the last one's end."""

    def __init__(
        self,
        launcher: Launcher,
        ranks: int,
        target: list[str],
        place: Place | None = None,
    ) -> None:
        self.verdict = ""
        self._launcher = launcher
        self._ranks = ranks
        self._target = target
        self._place = place or Place()
        self._stops: list[tuple[int, float]] = []  # signals to us, and when

    def __enter__(self) -> Self:
        self._reports = Reports(self._ranks)
        program = [sys.executable, rank_process.__file__, self._reports.path]
        program = self._place.prefix + program + self._target
        try:
            self._process = subprocess.Popen(
                self._launcher.command(self._ranks, program),
                env=os.environ | self._place.settings,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                process_group=0,  # a terminal's Ctrl-C comes to us alone
                preexec_fn=rank_process.die_with_parent,  # noqa: PLW1509 - no threads here
            )
        except BaseException:
            self._reports.close()
            raise
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._pumps = [
            Pump(self._process.stdout, 1),
            Pump(self._process.stderr, 2),
        ]
        self._handlers = [(s, signal.signal(s, self._on_stop)) for s in _STOPS]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, _ in self._handlers:
            signal.signal(number, signal.SIG_IGN)
        # Asking is over. Hydra kills every process group when its head is gone.
        self._process.kill()
        self._process.wait()
        self._reports.close()
        for pump in self._pumps:
            pump.close()
        for number, handler in self._handlers:
            signal.signal(number, handler)

    def wait(self) -> int:
        """Pass output on until the job is over; give the code to exit with."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._reports, selectors.EVENT_READ, self._reports.receive)
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
            with contextlib.suppress(ProcessLookupError):
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
            return self._stops[0][1] + rank_process.GRACE if len(self._stops) == 1 else 0.0
        failure = self._reports.first_failure()
        if failure is None:
            return float("inf")
        if self._reports.all_ended:
            return heard + QUIET
        ago = (time.time_ns() - int(failure["time"])) / 1e9
        return time.monotonic() + rank_process.GRACE - ago

    def _judge(self) -> int:
        self._reports.receive()
        failure = self._reports.first_failure()
        if failure and int(failure["code"]) in _KILLED and self._aborted():
            failure = None  # killed by the launcher, after what it reports itself
        code = 0 if failure else self._process.wait(GONE)
        for pump in self._pumps:
            if pump.aborted and code:
                self.verdict = f"rank {pump.aborted} called MPI_Abort with code {code}"
                return code
        if not self._aborted():
            failure = failure or (self._reports.vanished() if code else None)
        if failure:
            self.verdict = f"rank {failure['rank']} {failure['how']}"
            return int(failure["code"])
        if code:
            how = f"{self._launcher.name} {rank_process.describe(code)}"
            self.verdict = f"{how}, and no rank said why: did one call MPI_Abort?"
        return code if code >= 0 else 128 - code

    def _aborted(self) -> bool:
        """Whether the launcher has ended with a code that no killed rank gives it."""
        code = self._process.poll()
        return any(pump.aborted for pump in self._pumps) or (
            code is not None and code > 0 and code not in (*_KILLED, *_SIGNALS)
        )
