"""Messages of exchanges over slow links: in short segments, and with the same results."""

import subprocess
from pathlib import Path

import pytest

from ..cli.ranks import RUN, needs_mpi4py, needs_mpiexec
from .machine import needs_emulation

PROGRAM = Path(__file__).with_name("paced.py")
pytestmark = [needs_emulation, needs_mpiexec, needs_mpi4py, pytest.mark.mpi]


def run(ending: str) -> subprocess.CompletedProcess[str]:
    command = [*RUN, "-n", "4", "--network", "50mbit", str(PROGRAM), ending]
    return subprocess.run(command, capture_output=True, text=True, timeout=150)


def test_all_ranks_have_the_same_result():
    done = run("end")
    assert done.returncode == 0, done.stderr[-3000:]
    # Before the links are known to be slow, messages of up to a megabyte are sent whole.
    assert done.stdout == "segments of [32768]\n"


def test_a_rank_that_dies_is_named():
    done = run("die")
    assert done.returncode != 0
    assert "rank 3 was killed by signal 9" in done.stderr
