"""Ranks that disagree, groups that fail, and what is left when a job ends (law 7)."""

import subprocess
import sys
import threading
import time

import pytest

import sparcml
from sparcml import MismatchError, TransportError
from sparcml.transport import ThreadGroup, ThreadTransport

from .test_failures import X


def everything_but(name):
    """The other collectives, one of which a confused rank might call."""
    calls = {
        "allreduce": lambda comm: comm.allreduce(X, algorithm="ssar_recursive_double"),
        "allgather": lambda comm: comm.allgather(X),
        "alltoall": lambda comm: comm.alltoall([X] * comm.size),
        "numbers": lambda comm: comm.allreduce(1.0),
        "broadcast": lambda comm: comm.broadcast(X),
        "reduce": lambda comm: comm.reduce(X),
        "reduce_scatter": lambda comm: comm.reduce_scatter(X),
        "barrier": lambda comm: comm.barrier(),
        "split": lambda comm: comm.split(0),
        "duplicate": lambda comm: comm.duplicate(),
    }
    return calls.pop(name), calls


@pytest.mark.parametrize(
    "name",
    [
        "allreduce",
        "allgather",
        "alltoall",
        "numbers",
        "broadcast",
        "reduce",
        "reduce_scatter",
        "barrier",
        "duplicate",
    ],
)
def test_a_rank_in_another_collective(name):
    mine, others = everything_but(name)
    for other in ("allreduce", "allgather", "barrier"):
        if other == name or (name == "duplicate" and other == "barrier"):
            continue  # a duplicate begins with a barrier

        def body(comm, other=other):
            others[other](comm) if comm.rank == 1 else mine(comm)
            comm.barrier()

        with pytest.raises((MismatchError, TransportError)) as raised:
            sparcml.launch(body, 3, timeout=2)
        assert "rank 1" in str(raised.value)


def test_errors_in_a_group_name_ranks_of_the_world():
    def body(comm):
        group = comm.split(comm.rank % 2)
        try:
            comm.barrier()
            if comm.rank == 3:
                raise ValueError("here")
            group.allreduce(X)
            comm.barrier()
        except TransportError as error:
            return str(error)
        return ""

    said: list[str] = []

    def collecting(comm):
        said.append(body(comm))

    with pytest.raises(ValueError, match="here"):
        sparcml.launch(collecting, 4, timeout=5)
    assert len(said) == 3
    assert all("rank 3 raised ValueError: here" in text for text in said)


def test_the_first_to_raise_is_raised():
    def body(comm):
        if comm.rank == 2:
            raise ValueError("the cause")
        comm.barrier()

    for _ in range(50):
        with pytest.raises(ValueError, match="the cause"):
            sparcml.launch(body, 4, timeout=5)


def test_closed_duplicates_are_forgotten():
    def body(comm):
        for _ in range(50):
            comm.duplicate().close()
        return len(comm._transport.siblings), len(comm._transport._group._children)

    for family, _ in sparcml.launch(body, 3):
        assert family == 1


def test_a_rank_that_ends_while_another_waits_on_a_duplicate():
    def body(comm):
        other = comm.duplicate()
        if comm.rank == 0:
            other.allreduce(X)

    start = time.monotonic()
    with pytest.raises(TransportError, match="rank 1 has ended"):
        sparcml.launch(body, 2, timeout=20)
    assert time.monotonic() - start < 10


def test_an_interrupt_ends_the_ranks():
    code = """
import signal, threading, time, sparcml, _thread
signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
def body(comm):
    if comm.rank == 0:
        time.sleep(0.2)
        _thread.interrupt_main()
    comm.barrier() if comm.rank else time.sleep(0.5)
try:
    sparcml.launch(body, 3)
except KeyboardInterrupt:
    ranks = [t for t in threading.enumerate() if t.name.startswith("rank")]
    for thread in ranks:
        thread.join(5)  # far less than the barrier would wait
    print("left:", [t.name for t in ranks if t.is_alive()])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "left: []\n", done.stderr


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), "soon"])
def test_a_timeout_is_a_number_of_seconds(timeout):
    with pytest.raises(ValueError, match="timeout: value must be a number of seconds > 0"):
        sparcml.launch(lambda comm: None, 1, timeout=timeout)


def test_colors_are_whole_numbers():
    def body(comm):
        for bad in (1.5, "red"):
            with pytest.raises(TypeError, match="color must be an integer"):
                comm.split(bad)
        with pytest.raises(ValueError, match="2\\^53"):
            comm.split(2**53 + 1)
        with pytest.raises(ValueError, match="op must be one of"):
            comm.explain(X, op="bogus")

    sparcml.launch(body, 2)


def test_a_changed_header_in_the_agreement_is_noticed():
    """Law 8 for bare headers: each flipped bit of what rank 1 sends."""

    class Flipping(ThreadTransport):
        bit = 0

        def isend(self, peer, message):
            if self.rank == 1:
                message = message.copy()
                message[self.bit // 8] ^= 1 << self.bit % 8
            return super().isend(peer, message)

    for bit in range(0, 256, 5):
        group = ThreadGroup(2)
        transports = [Flipping(group, rank, 1.0) for rank in range(2)]
        transports[1].bit = bit
        caught: list[Exception] = []

        def body(rank, transports=transports, caught=caught):
            try:
                sparcml.Communicator(transports[rank]).explain(X)
            except sparcml.errors.SparcmlError as error:
                caught.append(error)

        threads = [threading.Thread(target=body, args=(r,)) for r in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(caught) >= 1, bit
