"""One rank of `sparcml run`: plays the script in a child and reports how it ends.

Started by its path, so that the supervising half imports neither sparcml nor NumPy.
"""

import contextlib
import ctypes
import io
import json
import os
import runpy
import signal
import sys
import time
from types import TracebackType
from typing import NoReturn

GRACE = 3.0  # seconds the other ranks have to say what they saw
RANK_VARIABLES = (
    "PMI_RANK",
    "PMIX_RANK",
    "OMPI_COMM_WORLD_RANK",
    "SLURM_PROCID",
    "RANK",  # torch's; last, for a shell may have any RANK
)

_PR_SET_PDEATHSIG = 1


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Have the kernel send this signal when the parent of this process is gone."""
    with contextlib.suppress(OSError, AttributeError):  # Linux alone can
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


def describe(code: int) -> str:
    """Say how a process with this `waitstatus_to_exitcode` ended."""
    if code >= 0:
        return f"exited with code {code}"
    with contextlib.suppress(ValueError):
        return f"was killed by signal {-code} ({signal.Signals(-code).name})"
    return f"was killed by signal {-code}"


class Channel:
    """The way to `sparcml run`, one JSON line a report; silent if it is elsewhere."""

    def __init__(self, path: str) -> None:
        """Open the named pipe; on another machine there is none."""
        self.rank = next((os.environ[v] for v in RANK_VARIABLES if v in os.environ), "0")
        try:
            self.fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            self.fd = -1

    def report(self, how: str, code: int, ended: bool) -> None:
        """Say how this rank ended; short enough to be one atomic write."""
        self._send(time=time.time_ns(), code=code, how=how[:400], ended=ended)

    def greet(self) -> None:
        """Let `sparcml run` watch this process, should it die without a word."""
        self._send(pid=os.getpid())

    def _send(self, **row: int | str) -> None:
        line = json.dumps({"rank": int(self.rank)} | row) + "\n"
        with contextlib.suppress(OSError):
            os.write(self.fd, line.encode())


def play(channel: Channel, target: list[str]) -> int:
    """Run the script or module as `python` would, and report its failure at once."""
    for stream in (sys.stdout, sys.stderr):  # whole lines, so that ranks do not mix
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
            _announce(channel, describe(code & 0xFF), code & 0xFF)
        raise
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BaseException as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        _announce(channel, f"raised {text}", 1)
        error = error.with_traceback(_script_frames(error.__traceback__))
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    return 0


def _announce(channel: Channel, how: str, code: int) -> None:
    channel.report(how, code, ended=False)
    # MPI's own exit handler waits for ranks that wait for this one.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, GRACE + 1)


def _script_frames(trace: TracebackType | None) -> TracebackType | None:
    ours = (__file__, runpy.__file__, "<frozen runpy>")
    while trace is not None and trace.tb_frame.f_code.co_filename in ours:
        trace = trace.tb_next
    return trace


def supervise(channel: Channel, child: int) -> int:
    """Wait for the child, report its end, and give the code to exit with."""
    # The launcher signals the whole process group: the child has its own copy.
    stops: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: stops.append(number))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = code if code >= 0 else 128 - code
    channel.report(describe(code), status, ended=True)
    # Our exit makes the launcher kill the others, who may have something to say.
    deadline = time.monotonic() + GRACE
    while status and not stops and time.monotonic() < deadline:
        time.sleep(0.02)
    return status


def main() -> NoReturn:
    """Split into supervisor and script: `rank.py PIPE [-m] TARGET ARGUMENTS...`."""
    # What the script started shares our process group, and must go too.
    signal.signal(signal.SIGUSR2, lambda *_: os.killpg(0, signal.SIGKILL))
    die_with_parent(signal.SIGUSR2)
    channel = Channel(sys.argv[1])
    channel.greet()
    supervisor = os.getpid()
    child = os.fork()
    if child:
        os._exit(supervise(channel, child))
    die_with_parent()
    signal.signal(signal.SIGUSR2, signal.SIG_DFL)
    if os.getppid() != supervisor:  # it died before the kernel knew
        os._exit(1)
    sys.exit(play(channel, sys.argv[2:]))


if __name__ == "__main__":
    main()
