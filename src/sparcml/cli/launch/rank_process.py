"""One rank of `sparcml run`: runs the script in a child process and reports how it ends.

It is started by its path, so that the supervising half imports neither sparcml nor NumPy.
"""

import contextlib
import ctypes
import io
import json
import mmap
import os
import runpy
import signal
import sys
import time
from types import TracebackType
from typing import NoReturn

# For the other ranks to report their own errors; then `sparcml run` ends them, before they
# call MPI_Abort.
GRACE_SECONDS = 2.5
RANK_VARIABLES = (
    "PMI_RANK",
    "PMIX_RANK",
    "OMPI_COMM_WORLD_RANK",
    "SLURM_PROCID",
    "RANK",  # torch's; last, because a shell may have set RANK
)

_PR_SET_PDEATHSIG = 1


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Have the kernel send this signal when the parent process ends."""
    with contextlib.suppress(OSError, AttributeError):  # Linux only
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


def describe(code: int) -> str:
    """Describe the end of a process by its `waitstatus_to_exitcode`."""
    if code >= 0:
        return f"exited with code {code}"
    with contextlib.suppress(ValueError):
        return f"was killed by signal {-code} ({signal.Signals(-code).name})"
    return f"was killed by signal {-code}"


class ReportPipe:
    """Pipe to `sparcml run`; every report is one line of JSON.

    On another machine the pipe does not exist, and reports are dropped.
    """

    def __init__(self, path: str) -> None:
        self.rank = next((os.environ[v] for v in RANK_VARIABLES if v in os.environ), "0")
        try:
            self.fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            self.fd = -1
        self.owner = os.getpid()

    def report_exit(
        self, how: str, code: int, ended: bool, number: int = 0, abrupt: bool = False
    ) -> None:
        """Report how this rank ended, and by which signal, in one atomic write."""
        row = {"code": code, "ended": ended, "signal": number, "abrupt": abrupt}
        self._send(time=time.time_ns(), how=how[:400], **row)

    def report_start(self) -> None:
        """Report the process id, so that `sparcml run` notices if it is killed."""
        self._send(pid=os.getpid())

    def _send(self, **row: int | str) -> None:
        line = json.dumps({"rank": int(self.rank)} | row) + "\n"
        with contextlib.suppress(OSError):
            os.write(self.fd, line.encode())


def run_target(pipe: ReportPipe, target: list[str]) -> int:
    """Run the script or module as `python` would, and report its failure at once."""
    for stream in (sys.stdout, sys.stderr):  # full lines, so that ranks do not interleave
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True, write_through=False)
    module = target[0] == "-m"
    sys.argv = target[1:] if module else target
    script = os.path.realpath(sys.argv[0])
    if not sys.flags.safe_path:
        sys.path[0] = os.getcwd() if module else os.path.dirname(script)  # noqa: PTH109, PTH120
    try:
        if module:
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(os.path.abspath(sys.argv[0]), run_name="__main__")  # noqa: PTH100
    except SystemExit as stop:
        if stop.code not in (None, 0):
            code = stop.code if isinstance(stop.code, int) else 1
            _report_failure(pipe, describe(code & 0xFF), code & 0xFF)
        raise
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BaseException as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        _report_failure(pipe, f"raised {text}", 1)
        error = error.with_traceback(_script_frames(error.__traceback__))
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    return 0


def _report_failure(pipe: ReportPipe, how: str, code: int) -> None:
    if os.getpid() != pipe.owner:  # a child that the script has forked
        return
    pipe.report_exit(how, code, ended=False)
    # MPI's exit handler waits for ranks that wait for this one.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, GRACE_SECONDS + 1)


def _script_frames(trace: TracebackType | None) -> TracebackType | None:
    ours = (__file__, runpy.__file__, "<frozen runpy>")
    while trace is not None and trace.tb_frame.f_code.co_filename in ours:
        trace = trace.tb_next
    return trace


def supervise(pipe: ReportPipe, child: int, finished: mmap.mmap) -> int:
    """Wait for the child, report its end, and return the exit code.

    Args:
        pipe: Pipe to `sparcml run`.
        child: Process id of the script.
        finished: Shared memory; the child sets its first byte at the end of the script.
    """
    # The launcher signals the process group, so that the child gets the signal as well.
    stops: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: stops.append(number))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = code if code >= 0 else 128 - code
    # Other ranks fail if one calls os._exit too early, with code 0 as well.
    abrupt = code == 0 and not finished[0]
    how = "called os._exit(0)" if abrupt else describe(code)
    pipe.report_exit(how, status, ended=True, number=max(0, -code), abrupt=abrupt)
    # When this process exits, the launcher kills the other ranks; let them report first.
    deadline = time.monotonic() + GRACE_SECONDS
    while status and not stops and time.monotonic() < deadline:
        time.sleep(0.02)
    return status


def main() -> NoReturn:
    """Fork into supervisor and script: `rank_process.py PIPE [-m] TARGET ARGUMENTS...`."""
    # Processes that the script started share this process group and must end with it.
    signal.signal(signal.SIGUSR2, lambda *_: os.killpg(0, signal.SIGKILL))
    die_with_parent(signal.SIGUSR2)
    pipe = ReportPipe(sys.argv[1])
    pipe.report_start()
    supervisor = os.getpid()
    finished = mmap.mmap(-1, 1)
    child = os.fork()
    if child:
        os._exit(supervise(pipe, child, finished))
    pipe.owner = os.getpid()
    die_with_parent()
    signal.signal(signal.SIGUSR2, signal.SIG_DFL)
    if os.getppid() != supervisor:  # it ended before the prctl call
        os._exit(1)
    try:
        code = run_target(pipe, sys.argv[2:])
    finally:
        if os.getpid() == pipe.owner:
            finished[0] = 1
    sys.exit(code)


if __name__ == "__main__":
    main()
