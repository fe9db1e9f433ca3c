"""Tests of the solvers on processes: the same bits as on threads, on every rank."""

import pytest

import sparcml

from ..mpi.jobs import mpiexec
from ..mpi.sgd import digests


@pytest.mark.mpi
def test_processes_and_threads_give_the_same_weights(tmp_path):
    job = mpiexec(3, "sgd.py", tmp_path, SPARCML_TIMEOUT="60")
    assert job.code == 0, job.err[-3000:]
    found = [(tmp_path / str(rank)).read_text().split() for rank in range(3)]
    assert found == sparcml.launch(digests, 3)
    assert found == [found[0]] * 3
