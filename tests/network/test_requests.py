"""Requests on the virtual clock: what overlaps takes the longer of the two."""

import numpy as np
import pytest

import sparcml
from sparcml.costs import Network

NET = Network(
    latency=1e-3,
    overhead=0.0,
    seconds_per_byte=1e-6,
    seconds_per_encoded=0.0,
    seconds_per_merged=0.0,
    seconds_per_written=0.0,
)
X = np.ones(1000, np.float32)  # takes 4.032 ms a round and 1 ms more to arrive


def overlapped(computing):
    def work(comm):
        comm.iallreduce(X, algorithm="recursive_double").wait()  # makes the duplicate
        start = comm.now()
        request = comm.iallreduce(X, algorithm="recursive_double")
        comm.advance(computing)
        request.wait()
        return comm.now() - start

    return sparcml.simulate(work, 2, NET).results


@pytest.mark.parametrize("computing", [0.0, 0.002, 0.02])
def test_communication_hides_behind_computing(computing):
    assert overlapped(computing) == pytest.approx([max(5.032e-3, computing)] * 2)


def test_asking_until_it_is_done_ends():
    def work(comm):
        request = comm.iallreduce(X)
        while not request.test():
            pass
        return request.wait()[0]

    assert sparcml.simulate(work, 4, NET).results == [4.0] * 4


def test_a_wait_may_be_given_up_and_taken_up_again():
    def work(comm):
        comm.barrier()
        request = comm.iallreduce(X)
        if comm.rank == 0:
            with pytest.raises(TimeoutError, match=r"0\.001 s"):
                request.wait(timeout=0.001)
        return request.wait()[0]

    assert sparcml.simulate(work, 4, NET).results == [4.0] * 4


def test_many_may_be_outstanding():
    def work(comm):
        requests = [comm.iallreduce(np.full(10, i, np.float32)) for i in range(5)]
        return [r.wait()[0] for r in requests]

    assert sparcml.simulate(work, 4).results == [[0, 4, 8, 12, 16]] * 4


def test_a_duplicate_may_be_left_before_others_come_to_it():
    def work(comm):
        slow = np.zeros(100_000, np.uint8)
        if comm.rank == 0:
            other = comm._transport.duplicate()
            other.send(1, X.view(np.uint8))
            other.close()
            del other
            comm._transport.send(1, slow)
            return None
        comm._transport.receive(0)
        return len(comm._transport.duplicate().receive(0))

    assert sparcml.simulate(work, 2, NET).results == [None, X.nbytes]


def test_groups_and_duplicates():
    def work(comm):
        with comm.duplicate() as other, comm.split(comm.rank % 2, key=-comm.rank) as group:
            mine = np.array([comm.rank], np.float64)
            same = group.allreduce(mine, algorithm="native")[0]
            return group.rank, same, group.allreduce(mine)[0], other.allreduce(mine)[0]

    want = [(2 - r // 2, 6 if r % 2 == 0 else 9, 15) for r in range(6)]
    got = sparcml.simulate(work, 6).results
    assert [(a, b, d) for a, b, _, d in got] == want
    assert all(b == c for _, b, c, _ in got)
