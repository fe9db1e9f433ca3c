"""Laws 1, 2, 4, 6 and 10 with MPI processes: the same collective files, another engine."""

import numpy as np
import pytest

from .jobs import mpiexec

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_laws(ranks):
    job = mpiexec(ranks, "laws_on_mpi.py", SPARCML_TIMEOUT="60")
    assert job.code == 0, job.err[-3000:]
    assert job.out == f"all laws hold on {ranks} ranks\n"


@pytest.mark.slow
def test_a_message_beyond_two_gib():
    job = mpiexec(2, "two_gib.py", SPARCML_TIMEOUT="100")
    assert job.code == 0, job.err[-3000:]
    assert job.out == f"{2**31 + 17} bytes arrived\n"


def test_threads_and_mpi_give_the_same_bits():
    """Law 10, seen from outside."""
    import sparcml

    from .same_bits import fingerprints

    job = mpiexec(3, "same_bits.py")
    assert job.code == 0, job.err[-3000:]
    on_threads = sparcml.launch(fingerprints, 3)
    assert job.out.split() == on_threads[0]
    assert len(np.unique(on_threads, axis=0)) == 1
