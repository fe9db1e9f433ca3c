"""Law 7 on threads: whatever one rank does, every other rank raises and names it."""

import threading
import time

import numpy as np
import pytest

import sparcml
from sparcml import MismatchError, Stream, TransportError

from .. import rosters

RANKS, BAD = 5, 2
X = Stream(1000, np.arange(0, 1000, 50), np.ones(20, np.float32))


def outcomes(bad, algorithm, raised=None):
    """What each rank raised when rank BAD behaves as `bad` says; `raised` counts them."""
    errors: list[BaseException | None] = [None] * RANKS

    def body(comm):
        try:
            comm.allreduce(X, algorithm=algorithm)
            if comm.rank == BAD:
                bad(comm)
            comm.allreduce(X, algorithm=algorithm)
            comm.allreduce(X, algorithm=algorithm)
        except BaseException as error:
            errors[comm.rank] = error
            if raised is not None:
                raised.release()
            raise

    start = time.monotonic()
    with pytest.raises((sparcml.errors.SparcmlError, ZeroDivisionError)):
        sparcml.launch(body, RANKS, timeout=0.5)
    assert time.monotonic() - start < 20
    return [e for r, e in enumerate(errors) if r != BAD]


@pytest.mark.parametrize("algorithm", ["auto", *rosters.ALLREDUCES])
def test_a_rank_that_raises(algorithm):
    def bad(comm):
        raise ZeroDivisionError("oh no")

    for error in outcomes(bad, algorithm):
        assert isinstance(error, TransportError)
        assert "rank 2 raised ZeroDivisionError: oh no" in str(error)


@pytest.mark.parametrize("algorithm", ["auto", *rosters.ALLREDUCES])
def test_a_rank_that_stalls(algorithm):
    raised = threading.Semaphore(0)

    def bad(comm):
        for _ in range(RANKS - 1):  # until all others have given up
            assert raised.acquire(timeout=15)

    for error in outcomes(bad, algorithm, raised):
        assert isinstance(error, TransportError)
        assert "rank 2 has not answered for 0.5 s" in str(error)
        assert "SPARCML_BUSY_TIMEOUT" in str(error)


@pytest.mark.parametrize("algorithm", ["auto", *rosters.ALLREDUCES])
def test_a_rank_that_leaves_early(algorithm):
    def body(comm):
        comm.allreduce(X, algorithm=algorithm)
        if comm.rank != BAD:
            comm.allreduce(X, algorithm=algorithm)

    with pytest.raises(TransportError, match="rank 2 has ended"):
        sparcml.launch(body, 5, timeout=5)


@pytest.mark.parametrize("algorithm", ["auto", *rosters.ALLREDUCES])
def test_a_rank_that_calls_something_else(algorithm):
    def bad(comm):
        comm.allgather(X)

    for error in outcomes(bad, algorithm):
        assert isinstance(error, MismatchError)
        assert "rank 2" in str(error)
        assert "allgather" in str(error)


@pytest.mark.parametrize(
    ("other", "shown"),
    [(Stream(2000, [1], [1.0]), "size 2000"), (Stream(1000, [1], np.ones(1)), "float64"),
     (Stream(1000, [1], np.ones(4, np.float32), block=4), "blocks of 4")],
)  # fmt: skip
@pytest.mark.parametrize("algorithm", ["auto", *rosters.ALLREDUCES])
def test_a_rank_with_another_vector(algorithm, other, shown):
    def bad(comm):
        comm.allreduce(other, algorithm=algorithm)

    for error in outcomes(bad, algorithm):
        assert isinstance(error, MismatchError)
        assert "rank 2" in str(error)
        assert "size 1000, float32" in str(error)
        assert shown in str(error)


@pytest.mark.parametrize("algorithm", ["auto", *rosters.LOSSLESS])
def test_a_rank_with_another_operation(algorithm):
    def bad(comm):
        comm.allreduce(X, op="max", algorithm=algorithm)

    for error in outcomes(bad, algorithm):
        assert isinstance(error, MismatchError)
        assert "(max)" in str(error)


def test_a_rank_that_closes_early():
    def body(comm):
        comm.allreduce(X)
        if comm.rank == BAD:
            comm.close()
            others.wait()
            return  # its own barrier would raise too, perhaps before theirs is recorded
        try:
            comm.barrier()
        finally:
            others.set()

    others = threading.Event()
    with pytest.raises(TransportError, match="rank 2 has closed the communicator"):
        sparcml.launch(body, RANKS)


def test_a_busy_rank_is_waited_for(monkeypatch, caplog):
    monkeypatch.setenv("SPARCML_TIMEOUT", "0.1")

    def body(comm):
        if comm.rank == 0:
            time.sleep(0.5)
        comm.advance(100.0)  # in a simulation
        return comm.allreduce(X).values[0]

    assert sparcml.launch(body, 2) == [2, 2]
    assert "rank 1 has waited 0 s for rank 0 in" in caplog.text
    assert sparcml.simulate(body, 2).results == [2, 2]


def test_a_communicator_that_failed_stays_closed():
    def body(comm):
        if comm.rank == 0:
            comm.allgather(X)
        else:
            with pytest.raises(MismatchError):
                comm.barrier() if comm.rank > 1 else comm.broadcast(X)
            comm.allreduce(X)

    with pytest.raises((MismatchError, TransportError)):
        sparcml.launch(body, 2, timeout=1)


def test_sizes_that_differ_leave_auto_usable():
    def body(comm):
        with pytest.raises(
            MismatchError, match=r"rank 0 has size 10, .*rank 1 has size 20"
        ):
            comm.allreduce(Stream(10 * (comm.rank + 1), [], []))
        return comm.allreduce(X).values[0]

    assert sparcml.launch(body, 3) == [3, 3, 3]


def test_ranks_that_wait_for_each_other():
    def body(comm):
        comm._transport.receive((comm.rank + 1) % comm.size)

    with pytest.raises(TransportError, match="wait for each other in a circle"):
        sparcml.launch(body, 3, timeout=0.3)


def test_a_group_fails_with_its_parent():
    def body(comm):
        group = comm.split(comm.rank % 2)
        if comm.rank == 3:
            raise ZeroDivisionError
        group.allreduce(X)
        group.allreduce(X)

    with pytest.raises(ZeroDivisionError):
        sparcml.launch(body, 4, timeout=5)
