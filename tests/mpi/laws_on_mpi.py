"""The checks on MPI; test_laws.py starts it as `laws_on_mpi.py FILE`."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

import sparcml
from tests import laws, rosters, waiting
from tests.engine_checks import law_checks, run_checks


def world(comm):
    assert comm.engine == "mpi"
    assert comm._transport.nodes.leaders == (0,)  # all on this machine


def nan_stays(comm):
    for op in rosters.OPS:
        laws.nan_stays(comm, "auto", op)


def user_messages(comm):
    """The user's own messages on COMM_WORLD do not mix with ours."""
    from mpi4py import MPI  # its import starts MPI, which the tests must not do

    user = MPI.COMM_WORLD
    to, source = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    receiving = user.Irecv(received := np.zeros(3), source, MPI.ANY_TAG)
    user.Isend(np.full(3, comm.rank, float), to, 5)
    result = comm.allreduce(np.ones(7, np.float32))
    receiving.Wait()
    assert result.tolist() == [comm.size] * 7
    assert received.tolist() == [source] * 3


def groups(comm):
    other = comm.duplicate()
    group = comm.split(comm.rank % 2, key=-comm.rank)
    want = sum(r for r in range(comm.size) if r % 2 == comm.rank % 2)
    assert group.allreduce(np.array([comm.rank], np.float64))[0] == want
    assert group.allreduce(np.array([comm.rank], np.float64), algorithm="native")[0] == want
    assert other.allreduce(np.array([1], np.float32))[0] == comm.size
    group.close()
    other.close()


def mpi_names(comm):
    """mpi4py's operations and UNDEFINED are accepted."""
    from mpi4py import MPI

    x = np.array([comm.rank + 1.0])
    for op, name in (
        (MPI.SUM, "sum"),
        (MPI.MIN, "min"),
        (MPI.MAX, "max"),
        (MPI.PROD, "prod"),
    ):
        assert comm.allreduce(x, op) == comm.allreduce(x, name)
        assert comm.allreduce(comm.rank, op=op) == comm.allreduce(comm.rank, name)
        assert comm.reduce(x, 0, op) == comm.reduce(x, 0, name)
        assert comm.iallreduce(x, op).wait() == comm.allreduce(x, name)
        assert comm.explain(x, op).choice == comm.explain(x, name).choice
    np.testing.assert_array_equal(
        comm.reduce_scatter(x, MPI.MAX), comm.reduce_scatter(x, "max")
    )
    with pytest.raises(ValueError, match=r"op must be one of sum, .* got 'land'; use min"):
        comm.allreduce(x, MPI.LAND)
    assert comm.split(MPI.UNDEFINED) is None


def segments(comm):
    from sparcml.transport import mpi

    default, mpi.SEGMENT_BYTES = mpi.SEGMENT_BYTES, 1000
    try:
        for size in (0, 1, 999, 1000, 1001, 5000, 5001):
            message = np.arange(size).astype(np.uint8)
            to, source = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
            received = comm._transport.exchange(to, message, source)
            np.testing.assert_array_equal(received, message)
        long = np.arange(3000, dtype=np.float64)
        np.testing.assert_array_equal(comm.allreduce(long), comm.size * long)
    finally:
        mpi.SEGMENT_BYTES = default


def from_mpi(comm):
    from mpi4py import MPI

    del comm
    with sparcml.from_mpi(MPI.COMM_WORLD) as own:
        assert own.allreduce(np.array([1], np.float32))[0] == own.size


CHECKS = {
    "world": world,
    **law_checks(lambda algorithm: rosters.OPS),
    "nan_stays": nan_stays,
    "user_messages": user_messages,
    "groups": groups,
    "mpi_names": mpi_names,
    "segments": segments,
    "from_mpi": from_mpi,
    **waiting.CHECKS,
}

if __name__ == "__main__":
    with sparcml.world() as comm:
        run_checks(comm, CHECKS, Path(sys.argv[1]))
        sys.exit(0)
