"""Which of several reports names the cause, and what the pipe leaves behind."""

import json
import os
import signal
import tempfile

import pytest

from sparcml.cli.launch.exit_reports import ExitReports

SECOND = 10**9


def report(
    rank: int,
    seconds: float,
    code: int,
    number: int = 0,
    ended: bool = True,
    how: str = "ended",
) -> str:
    row = {
        "rank": rank,
        "time": int((100 + seconds) * SECOND),
        "code": code,
        "how": how,
    }
    return json.dumps(row | {"ended": ended, "signal": number})


LOST = "raised TransportError: rank 1 raised SystemExit: 3"
NOTICED = report(0, 0.0, 1, ended=False, how=LOST)
EXITED = report(1, 0.3, 3, ended=False, how="exited with code 3")
RAISED = report(0, 0.0, 1, ended=False, how="raised ValueError: bad")
KILLED = report(2, 0.3, 137, signal.SIGKILL)
CRASHED = report(2, 0.3, 139, signal.SIGSEGV)
STOPPED = report(1, 0.1, 143, signal.SIGTERM)


@pytest.mark.parametrize(
    ("reports", "aborted", "cause"),
    [
        ([NOTICED, KILLED], None, 2),
        ([NOTICED, STOPPED, KILLED], None, 2),
        ([NOTICED, EXITED], None, 1),
        ([NOTICED, EXITED, KILLED], None, 2),
        ([RAISED, EXITED], None, 0),
        ([NOTICED, report(1, 0.1, 1), CRASHED], None, 2),
        # Its launcher kills the others after a while, and an alarm ends a rank that hangs.
        ([NOTICED, report(1, 3.0, 137, signal.SIGKILL)], None, 0),
        ([NOTICED, report(0, 0.1, 142, signal.SIGALRM)], None, 0),
        # A rank that has noticed calls MPI_Abort long after; another one calls it first.
        ([NOTICED, KILLED], 103.0, 2),
        ([KILLED, STOPPED], 100.2, None),
        ([CRASHED, STOPPED], 100.2, 2),
        ([report(0, 0.0, 0)], None, None),
    ],
)
def test_a_kill_outranks_those_that_noticed(reports, aborted, cause):
    pipe = ExitReports(3)
    try:
        fd = os.open(pipe.path, os.O_WRONLY | os.O_NONBLOCK)
        os.write(fd, "".join(f"{line}\n" for line in reports).encode())
        os.close(fd)
        pipe.receive()
        found = pipe.first_failure(aborted)
        assert (found and found["rank"]) == cause
    finally:
        pipe.close()


@pytest.mark.skipif(not os.path.exists("/proc"), reason="needs /proc")  # noqa: PTH110
def test_the_pipe_has_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    pipe = ExitReports(2)
    assert list(tmp_path.iterdir()) == []
    pipe.close()
