"""Decentralized training with MPI processes: the bits of threads, and a rank that is killed."""

import signal
import subprocess
import sys

import pytest

import sparcml

from . import gossip
from .jobs import HERE, left_behind, mpiexec

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize(
    ("ranks", "options"),
    [(4, []), pytest.param(2, ["torch"], marks=pytest.mark.torch)],
    ids=["arrays", "torch"],
)
def test_threads_and_mpi_give_the_same_bits(tmp_path, ranks, options):
    """Law 10: the same code on every engine; on MPI in the way of large models."""
    if options:
        pytest.importorskip("torch")
    job = mpiexec(ranks, "gossip.py", tmp_path, *options, SPARCML_TIMEOUT="60")
    assert job.code == 0, job.err[-3000:]
    found = [(tmp_path / str(rank)).read_text().split() for rank in range(ranks)]
    work = gossip.torch_digests if options else gossip.digests
    assert sparcml.launch(work, ranks) == found


def test_the_launcher_names_a_killed_rank():
    """Law 7: the job ends non-zero, reports the rank, and leaves no process."""
    program = str(HERE / "gossip.py")
    command = [sys.executable, "-m", "sparcml", "run", "-n", "4", program, "dies"]
    job = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert job.returncode == 128 + signal.SIGKILL, job.stderr[-3000:]
    assert "rank 2 was killed by signal 9 (SIGKILL)" in job.stderr
    pids = [int(line.split()[1]) for line in job.stdout.splitlines() if line[:4] == "pid "]
    assert len(pids) == 4
    assert left_behind(pids) == []
