"""Start `sparcml run` on scripts, and look after what it leaves behind."""

import contextlib
import importlib.util
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from sparcml.cli.launch.launcher import find_mpiexec

Job = subprocess.Popen[str]
_started: list[Job] = []
PATIENCE = 60.0  # seconds: on a busy machine, an interpreter may take long to start
RUN = [sys.executable, "-m", "sparcml", "run"]
needs_mpiexec = pytest.mark.skipif(find_mpiexec() is None, reason="no mpiexec here")
needs_mpi4py = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None, reason="no mpi4py here"
)

# Guarantees that do not depend on who starts the ranks: options that choose it.
each_engine = pytest.mark.parametrize(
    "engine",
    [
        pytest.param((), id="mpi", marks=[needs_mpiexec, pytest.mark.mpi]),
        pytest.param(("--engine", "torch"), id="torch"),
    ],
)

# Every rank leaves its process ids, its supervisor's too, before the body runs.
PROLOGUE = """
import os, signal, subprocess, sys, time
names = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "RANK")
rank = int(next((os.environ[name] for name in names if name in os.environ), 0))
with open(f"{rank}.tmp", "w") as file:
    print(os.getpid(), os.getppid(), file=file)
os.rename(f"{rank}.tmp", f"{rank}.pid")
"""


def start(
    folder: Path,
    body: str,
    ranks: int = 3,
    arguments: Sequence[str] = (),
    options: Sequence[str] = (),
    before: Sequence[str] = (),
) -> Job:
    Path(folder, "script.py").write_text(PROLOGUE + body)
    job = subprocess.Popen(
        [*before, *RUN, "-n", str(ranks), *options, "script.py", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    _started.append(job)
    return job


def end_jobs() -> None:
    """End the jobs that a failed test has left, and close their pipes."""
    while _started:
        with _started.pop() as job:
            if job.poll() is None:
                job.terminate()  # which ends its ranks, too
                with contextlib.suppress(subprocess.TimeoutExpired):
                    job.wait(10)
                job.kill()


def finish(process: Job, timeout: float = 40.0) -> tuple[int, str, str]:
    with process:  # whose pipes would otherwise fail a later test with a ResourceWarning
        try:
            out, err = process.communicate(timeout=timeout)
        finally:
            process.kill()
    return process.returncode, out, err


def wait_for_ranks(folder: Path, ranks: int) -> list[int]:
    deadline = time.monotonic() + PATIENCE
    while len(files := list(folder.glob("*.pid"))) < ranks:
        assert time.monotonic() < deadline, files
        time.sleep(0.02)
    return [int(pid) for file in files for pid in file.read_text().split()]


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def assert_gone(pids: list[int], within: float = 0.0) -> None:
    deadline = time.monotonic() + within
    while left := [pid for pid in pids if alive(pid)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.02)
