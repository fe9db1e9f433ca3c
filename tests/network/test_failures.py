"""Law 7 on simulated ranks: nobody waits for ever, and the error names who is to blame."""

import re

import numpy as np
import pytest

import sparcml
from sparcml import MismatchError, Stream, TransportError

from .. import rosters

BAD = 2
X = Stream(1000, np.arange(0, 1000, 50), np.ones(20, np.float32))


def outcomes(bad, algorithm="auto", ranks=5):
    """What each rank raised when rank BAD behaves as `bad` says."""
    errors: list[BaseException | None] = [None] * ranks

    def body(comm):
        try:
            comm.allreduce(X, algorithm=algorithm)
            if comm.rank == BAD:
                bad(comm)
            comm.allreduce(X, algorithm=algorithm)
            comm.allreduce(X, algorithm=algorithm)
        except BaseException as error:
            errors[comm.rank] = error
            raise

    with pytest.raises((sparcml.errors.SparcmlError, ZeroDivisionError)):
        sparcml.simulate(body, ranks, trace=0)
    return [e for r, e in enumerate(errors) if r != BAD]


@pytest.mark.parametrize("algorithm", ["auto", *rosters.ALLREDUCES])
def test_a_rank_that_raises(algorithm):
    def bad(comm):
        raise ZeroDivisionError("oh no")

    for error in outcomes(bad, algorithm):
        assert isinstance(error, TransportError)
        assert "rank 2 raised ZeroDivisionError: oh no" in str(error)


@pytest.mark.parametrize("algorithm", ["auto", *rosters.ALLREDUCES])
def test_a_rank_that_computes_for_long_is_waited_for(algorithm):
    def body(comm):
        if comm.rank == BAD:
            comm.advance(100.0)
        return comm.allreduce(X, algorithm=algorithm).to_dense().sum()

    simulation = sparcml.simulate(body, 5)
    assert simulation.seconds > 100
    assert simulation.results == [100.0] * 5


def test_a_wait_with_a_limit_does_not_outlast_it():
    def body(comm):
        comm.iallreduce(X).wait()  # the first one opens a communicator of its own
        if comm.rank == BAD:
            comm.advance(100.0)
            return comm.iallreduce(X).wait().nnz
        request, start = comm.iallreduce(X), comm.now()
        with pytest.raises(TimeoutError, match="30 s"):
            request.wait(timeout=30.0)
        assert comm.now() == pytest.approx(start + 30)
        return request.wait().nnz

    assert sparcml.simulate(body, 5).results == [20] * 5


@pytest.mark.parametrize("algorithm", ["auto", *rosters.ALLREDUCES])
def test_a_rank_that_leaves_early(algorithm):
    def body(comm):
        comm.allreduce(X, algorithm=algorithm)
        if comm.rank != BAD:
            comm.allreduce(X, algorithm=algorithm)

    with pytest.raises(TransportError, match="rank 2 has ended"):
        sparcml.simulate(body, 5)


@pytest.mark.parametrize("algorithm", ["auto", *rosters.ALLREDUCES])
def test_a_rank_that_calls_something_else(algorithm):
    for error in outcomes(lambda comm: comm.allgather(X), algorithm):
        assert isinstance(error, MismatchError)
        assert "rank 2" in str(error)
        assert "allgather" in str(error)


def test_ranks_that_wait_for_each_other_raise_at_once():
    times = {}

    def body(comm):
        comm.advance(0.5)
        try:
            comm._transport.receive((comm.rank + 1) % comm.size)
        finally:
            times[comm.rank] = comm.now()

    with pytest.raises(TransportError) as caught:
        sparcml.simulate(body, 3)
    for rank in range(3):
        assert f"rank {rank} waits for rank {(rank + 1) % 3} in" in str(caught.value)
    assert times == {0: 0.5, 1: 0.5, 2: 0.5}


def test_of_many_that_wait_only_some_are_listed():
    with pytest.raises(TransportError, match=re.escape("and 92 more")):
        sparcml.simulate(lambda c: c._transport.receive(c.rank ^ 1), 100)


def test_a_request_ends_with_its_peers():
    def body(comm):
        request = comm.iallreduce(X)
        request.wait()
        if comm.rank == BAD:
            raise ZeroDivisionError
        comm.iallreduce(X).wait()

    with pytest.raises(ZeroDivisionError):
        sparcml.simulate(body, 4)


def test_a_rank_may_raise_with_requests_under_way():
    def body(comm):
        request = comm.iallreduce(X)
        if comm.rank == BAD:
            comm.iallreduce(X)
            raise ZeroDivisionError
        return request.wait()

    with pytest.raises(ZeroDivisionError):
        sparcml.simulate(body, 4)


def test_groups_fail_with_their_parent():
    def body(comm):
        group = comm.split(comm.rank % 2)
        if comm.rank == 3:
            raise ZeroDivisionError
        group.allreduce(X)
        group.allreduce(X)

    with pytest.raises(ZeroDivisionError):
        sparcml.simulate(body, 4)


def test_what_is_never_closed_ends_with_the_run():
    def body(comm):
        other = comm.duplicate()
        return other.iallreduce(X).wait().nnz

    assert sparcml.simulate(body, 4).results == [20] * 4


def test_what_has_not_even_begun_ends_too():
    def body(comm):
        comm.duplicate().iallreduce(X)

    sparcml.simulate(body, 1)
    sparcml.simulate(body, 3)


def test_an_interrupt_ends_all_ranks():
    def body(comm):
        if comm.rank == 1:
            raise KeyboardInterrupt
        comm.barrier()

    with pytest.raises(KeyboardInterrupt):
        sparcml.simulate(body, 4)
