"""Tests of reading a file with several processes."""

from pathlib import Path

import pytest

from tests.mpi.jobs import mpiexec

pytest.importorskip("mpi4py")
pytestmark = pytest.mark.mpi


def test_reading(tmp_path):
    good, bad = tmp_path / "good.svm", tmp_path / "bad.svm"
    good.write_text("".join(f"{i} {i + 1}:1\n" for i in range(30)))
    bad.write_text(good.read_text() + "1 2:x\n")
    job = mpiexec(3, Path(__file__).with_name("reading.py"), str(good), str(bad))
    assert job.code == 0, job.err
    lines = job.out.splitlines()
    refused = f"refused rank 2: {bad}, line 31, column 5: the value 'x' is not a number"
    assert lines.count(refused) == 3
    for first in (0, 10, 20):
        assert lines.count(f"beside {first} 30 30 435.0") == 2
    shares = [line.split() for line in lines if line.startswith("None")]
    assert min(int(share[1]) for share in shares) == 0
    assert [share[2:] for share in shares] == [["30", "30", "435.0"]] * 3
