"""`sparcml demo`: right sums, a table that fits, and a remedy where there is no MPI."""

import os
import subprocess
import sys

import pytest

from sparcml.cli.bench.sums import SUMS
from sparcml.cli.launcher import find_mpiexec

from .inside import called

pytest.importorskip("mpi4py")


def demo(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "sparcml", "demo", *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"COLUMNS": "80"} | environment,
    )


@pytest.mark.mpi
@pytest.mark.skipif(find_mpiexec() is None, reason="no mpiexec here")
def test_demo_sums_right_and_says_so():
    done = demo("--size", "16K")
    assert done.returncode == 0, done.stderr
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    for word in ("density", "nnz", "algorithm", "bytes of", "vs MPI", "wrong"):
        assert word in done.stdout
    rows = [line for line in done.stdout.splitlines() if line.rstrip().endswith(" 0")]
    assert len(rows) == 3 * (len(SUMS) + 2)  # and MPI's own, and auto
    assert "sparcml bench allreduce" in done.stdout
    assert "docs/tour.md" in done.stdout


def test_bad_size_is_one_line(monkeypatch, capfd):
    code, _, err = called(monkeypatch, capfd, "demo", "--size", "much")
    assert code == 2
    assert err.count("\n") == 1
    assert "much" in err


def test_without_mpi_there_is_a_remedy():
    code = (
        "import sys; from sparcml.cli import start, main; "
        "start.find_launcher = lambda: None; sys.argv = ['sparcml', 'demo']; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "pip install sparcml[mpich]" in done.stderr
    assert done.stderr.count("\n") == 1
