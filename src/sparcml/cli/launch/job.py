"""A running job: its output, the exit reports of its ranks, and its end."""

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
from sparcml.cli.launch.exit_reports import EXIT_SECONDS, KILL_SIGNALS, ExitReports
from sparcml.cli.launch.launcher import Launcher
from sparcml.cli.launch.launcher_output import OutputFilter

QUIET_SECONDS = 0.2  # without output, after which the output is complete
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Exit codes of launchers if a rank is killed; hydra's are the numbers of the signals.
_KILLED_CODES = (*KILL_SIGNALS, *(128 + number for number in KILL_SIGNALS))
CLEAN_SECONDS = 3.0  # for the launcher to remove its files after its ranks have ended


@dataclass(frozen=True)
class Placement:
    """Where ranks run.

    Attributes:
        prefix: Prefix of their command.
        settings: Additions to their environment.
        is_isolated: Whether they may not open files of this process.
    """

    prefix: list[str] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    is_isolated: bool = False


class Job:
    """Ranks under a launcher, from their start to the end of the last one.

    Args:
        launcher: Program that starts the ranks.
        ranks: Number of ranks.
        target: Script or `-m module`, with its arguments.
        placement: Prefix and environment of the ranks.

    Attributes:
        failure: One line that names the rank that failed and how; empty on success.
    """

    def __init__(
        self,
        launcher: Launcher,
        ranks: int,
        target: list[str],
        placement: Placement | None = None,
    ) -> None:
        self.failure = ""
        self._launcher = launcher
        self._ranks = ranks
        self._target = target
        self._placement = placement or Placement()
        self._stops: list[tuple[int, float]] = []  # signals received, and when

    def __enter__(self) -> Self:
        self._reports = ExitReports(self._ranks, named=self._placement.is_isolated)
        program = [sys.executable, rank_process.__file__, self._reports.path]
        program = self._placement.prefix + program + self._target
        try:
            self._process = subprocess.Popen(
                self._launcher.command(self._ranks, program),
                env=self._launcher.settings() | os.environ | self._placement.settings,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                process_group=0,  # a terminal's Ctrl-C reaches this process only
                preexec_fn=rank_process.die_with_parent,  # noqa: PLW1509 - no threads here
            )
        except BaseException:
            self._reports.close()
            raise
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._outputs = [
            OutputFilter(self._process.stdout, 1),
            OutputFilter(self._process.stderr, 2),
        ]
        self._handlers = [(s, signal.signal(s, self._on_stop)) for s in _STOP_SIGNALS]
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, _ in self._handlers:
            signal.signal(number, signal.SIG_IGN)
        self._reports.kill_ranks()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(CLEAN_SECONDS)
        # Hydra kills every process group when it is killed itself.
        self._process.kill()
        self._process.wait()
        self._reports.close()
        for output in self._outputs:
            output.close()
        for number, handler in self._handlers:
            signal.signal(number, handler)

    def wait(self) -> int:
        """Forward output until the job has ended, and return the exit code."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._reports, selectors.EVENT_READ, self._reports.receive)
            for output in self._outputs:
                selector.register(output.source, selectors.EVENT_READ, output.forward)
            self._watch(selector)
        for output in self._outputs:
            output.flush()
        if self._stops:
            number = signal.Signals(self._stops[0][0])
            self.failure = f"stopped by {number.name}"
            return 128 + number
        return self._exit_code()

    def _on_stop(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._stops.append((number, time.monotonic()))
        if len(self._stops) == 1:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    def _watch(self, selector: selectors.BaseSelector) -> None:
        last_event = time.monotonic()
        while time.monotonic() < self._deadline(last_event):
            remaining = self._deadline(last_event) - time.monotonic()
            ready = selector.select(max(0.0, min(QUIET_SECONDS / 2, remaining)))
            for key, _ in ready:
                if not key.data():
                    selector.unregister(key.fd)
            if ready:
                last_event = time.monotonic()
            elif self._process.poll() is not None:
                return
            else:
                for output in self._outputs:
                    output.flush()
            if not any(output.open for output in self._outputs):
                return

    def _deadline(self, last_event: float) -> float:
        """Return when to end the job: soon after a rank fails or a stop signal."""
        grace = rank_process.GRACE_SECONDS
        if self._stops:
            return self._stops[0][1] + grace if len(self._stops) == 1 else 0.0
        failure = self._reports.first_failure()
        if failure is None:
            return float("inf")
        if self._reports.all_ended:
            return last_event + QUIET_SECONDS
        elapsed = (time.time_ns() - int(failure["time"])) / 1e9
        return time.monotonic() + grace - elapsed

    def _exit_code(self) -> int:
        self._reports.receive()
        report = self._reports.first_failure(self._aborted_time())
        code = 0 if report else self._process.wait(EXIT_SECONDS)
        for output in self._outputs:
            if output.aborted_rank and code:
                self.failure = (
                    f"rank {output.aborted_rank} called MPI_Abort with code {code}"
                )
                return code
        if report:
            self.failure = f"rank {report['rank']} {report['how']}"
            return int(report["code"])
        if code:
            how = f"{self._launcher.name} {rank_process.describe(code)}"
            self.failure = f"{how}, and no rank reported why; did one call MPI_Abort?"
        return code if code >= 0 else 128 - code

    def _aborted_time(self) -> float | None:
        """Return when a rank called MPI_Abort, or None.

        Without a message of MPI: now, if the launcher has exited with a code that no killed
        rank causes.
        """
        times = (output.aborted_time for output in self._outputs)
        code = self._process.poll()
        aborted = code is not None and code > 0 and code not in _KILLED_CODES
        return next((t for t in times if t is not None), time.time() if aborted else None)
