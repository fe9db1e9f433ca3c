"""Starting a program on several MPI ranks, and seeing that nobody is left."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
MPIEXEC = Path(sys.executable).with_name("mpiexec")


@dataclass
class Ended:
    """How a job ended."""

    code: int
    out: str
    err: str
    seconds: float

    def pids(self) -> list[int]:
        return [
            int(line.split()[1]) for line in self.out.splitlines() if line[:4] == "pid "
        ]


def mpiexec(ranks, program, *arguments, timeout=120, **environment) -> Ended:
    """Run a program of this folder on so many ranks."""
    start = time.monotonic()
    done = subprocess.run(
        [MPIEXEC, "-n", str(ranks), sys.executable, HERE / program, *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **environment},
    )
    seconds = time.monotonic() - start
    return Ended(done.returncode, done.stdout, done.stderr, seconds)


def left_behind(pids: list[int], patience: float = 5.0) -> list[int]:
    """Who is still there; the system may take a moment to end a stopped process."""
    end = time.monotonic() + patience
    while (left := [pid for pid in pids if _alive(pid)]) and time.monotonic() < end:
        time.sleep(0.05)
    return left


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
