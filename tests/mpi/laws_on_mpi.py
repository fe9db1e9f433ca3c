"""The laws on MPI: started by test_laws.py."""

import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

sys.path.insert(0, str(Path(__file__).parents[2]))

import sparcml
from tests import laws, rosters
from tests.aggregate import gradients


def roster(comm):
    for algorithm in ("auto", *rosters.LOSSLESS):
        for case in laws.CASES:
            for op in ("sum", "min", "max", "prod"):
                laws.same_sum(comm, algorithm, case, op)
    for op in ("sum", "min", "max", "prod"):
        laws.nan_stays(comm, "auto", op)
    for algorithm in rosters.LOSSY:
        for case in laws.ROOM_FOR_ALL:
            laws.same_sum(comm, algorithm, case)
        for case in laws.CASES:
            laws.largest_sums(comm, algorithm, case)
    for algorithm, op in rosters.REDUCTIONS:
        laws.same_bits(comm, algorithm, op)
    for algorithm in rosters.COUNTED:
        for case in laws.CASES:
            laws.declared_cost(comm, algorithm, case)
    for name in rosters.METHODS:
        gradients.conserves(comm, name)


def messages_of_the_user_do_not_mix(comm):
    """The user's own traffic on COMM_WORLD goes on while ours does."""
    world = MPI.COMM_WORLD
    to, source = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    theirs = world.Irecv(mine := np.zeros(3), source, MPI.ANY_TAG)
    world.Isend(np.full(3, comm.rank, float), to, 5)
    total = comm.allreduce(np.ones(7, np.float32))
    theirs.Wait()
    assert total.tolist() == [comm.size] * 7
    assert mine.tolist() == [source] * 3


def groups(comm):
    other = comm.duplicate()
    group = comm.split(comm.rank % 2, key=-comm.rank)
    want = sum(r for r in range(comm.size) if r % 2 == comm.rank % 2)
    assert group.allreduce(np.array([comm.rank], np.float64))[0] == want
    assert group.allreduce(np.array([comm.rank], np.float64), algorithm="native")[0] == want
    assert other.allreduce(np.array([1], np.float32))[0] == comm.size
    group.close()
    other.close()


def long_messages_in_segments(comm):
    from sparcml.transport import mpi

    whole, mpi.SEGMENT_BYTES = mpi.SEGMENT_BYTES, 1000
    try:
        for size in (0, 1, 999, 1000, 1001, 5000, 5001):
            message = np.arange(size).astype(np.uint8)
            to, source = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
            got = comm._transport.exchange(to, message, source)
            np.testing.assert_array_equal(got, message)
        big = np.arange(3000, dtype=np.float64)
        np.testing.assert_array_equal(comm.allreduce(big), comm.size * big)
    finally:
        mpi.SEGMENT_BYTES = whole


with sparcml.world() as comm:
    assert comm.engine == ("mpi" if comm.size > 1 else "threads")
    assert comm._transport.nodes.leaders == (0,)  # all on this machine
    roster(comm)
    if comm.size > 1:
        for check in (messages_of_the_user_do_not_mix, groups, long_messages_in_segments):
            check(comm)
with sparcml.from_mpi(MPI.COMM_WORLD) as comm:
    assert comm.allreduce(np.array([1], np.float32))[0] == comm.size
if comm.rank == 0:
    print(f"all laws hold on {comm.size} ranks")
