"""Laws 1, 2, 4, 6, 10 and 12 with MPI processes: the same collectives on another engine."""

import numpy as np
import pytest

import sparcml

from ..engine_checks import assert_check
from . import laws_on_mpi
from .jobs import mpiexec

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("check", laws_on_mpi.CHECKS)
@pytest.mark.parametrize("ranks", [2, 3, 4])  # one rank is a thread
def test_law(ranks, check, shared_folder):
    path = shared_folder / f"mpi-{ranks}.jsonl"

    def run():
        job = mpiexec(ranks, "laws_on_mpi.py", path, SPARCML_TIMEOUT="60")
        assert job.code == 0, job.err[-3000:]  # it ends with sys.exit(0)
        return job.err

    assert_check(path, check, run)


@pytest.mark.slow
def test_a_message_beyond_two_gib():
    job = mpiexec(2, "two_gib.py", SPARCML_TIMEOUT="100")
    assert job.code == 0, job.err[-3000:]
    assert job.out == f"{2**31 + 17} bytes arrived\n"


def test_threads_and_mpi_give_the_same_bits():
    """Law 10, seen from outside."""
    from .same_bits import fingerprints

    job = mpiexec(3, "same_bits.py")
    assert job.code == 0, job.err[-3000:]
    on_threads = sparcml.launch(fingerprints, 3)
    assert job.out.split() == on_threads[0]
    assert len(np.unique(on_threads, axis=0)) == 1


@pytest.mark.parametrize("ranks", [2, 3])
def test_native_sums_are_the_same_with_and_without_a_trace(ranks, tmp_path):
    job = mpiexec(ranks, "native_traced.py", tmp_path / "trace.json", SPARCML_TIMEOUT="60")
    assert job.code == 0, job.err[-3000:]
    assert job.out == "same bits\n"
