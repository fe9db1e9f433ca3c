"""Ranks that disagree on the topology, the step or the vectors: all raise, none hangs."""

import time

import numpy as np
import pytest

import sparcml
from sparcml import QSGD, MismatchError, TransportError
from sparcml import decentralized as dec

X = np.ones(64, np.float32)
SECONDS = 30  # a wait would end after the busy timeout, which is far longer


def errors(body, ranks):
    """What each rank raises in body(comm), as text."""
    found = [""] * ranks

    def checked(comm):
        try:
            body(comm)
            comm.barrier()
        except Exception as error:
            found[comm.rank] = f"{type(error).__name__}: {error}"

    start = time.monotonic()
    sparcml.launch(checked, ranks, timeout=2 * SECONDS)
    assert time.monotonic() - start < SECONDS
    return found


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("other", [0, 1])
def test_topologies_that_differ(ranks, other):
    def body(comm):
        topology = dec.star(ranks) if comm.rank == other else dec.ring(ranks)
        with pytest.raises(MismatchError) as raised:
            comm.neighbor_allreduce(X, topology)
        text = str(raised.value)
        result = comm.neighbor_allreduce(X, dec.complete(ranks))  # it remains usable
        np.testing.assert_array_equal(result, X)
        return text

    texts = set(sparcml.launch(body, ranks, timeout=SECONDS))
    assert len(texts) == 1  # the same on every rank
    (text,) = texts
    assert f"rank {other} has star({ranks})" in text
    assert f"has ring({ranks})" in text
    assert text.endswith("all ranks must pass the same topology")


@pytest.mark.parametrize("ranks", [4, 5, 8])
@pytest.mark.parametrize("known", [False, True])
def test_a_topology_that_changes_on_one_rank(ranks, known):
    def body(comm):
        ring, complete = dec.ring(ranks), dec.complete(ranks)
        comm.neighbor_allreduce(X, ring)
        if known:
            comm.neighbor_allreduce(X, complete)
        comm.neighbor_allreduce(X, complete if comm.rank == 1 else ring)

    for error in errors(body, ranks):
        assert error.startswith(("MismatchError", "TransportError"))
        assert "neighbor_allreduce" in error


@pytest.mark.parametrize("ranks", [4, 8])
@pytest.mark.parametrize("build", [dec.one_peer_exponential, dec.base_graph])
def test_a_step_that_differs(ranks, build):
    def body(comm):
        topology = build(ranks)
        for step in range(3):
            comm.neighbor_allreduce(X, topology, step)
        comm.neighbor_allreduce(X, topology, 0 if comm.rank == 1 else 1)

    for error in errors(body, ranks):
        assert error.startswith("MismatchError")
        assert "neighbor_allreduce" in error


def test_weights_that_differ():
    """The neighbours are the same, so that every message is received."""

    def body(comm):
        ring = dec.ring(4)
        for topology in (ring, ring.lazy()):
            comm.neighbor_allreduce(X, topology)
        comm.neighbor_allreduce(X, ring.lazy() if comm.rank == 1 else ring)

    found = errors(body, 4)
    assert all(error.startswith("MismatchError") for error in found)
    assert any("has another one, in neighbor_allreduce" in error for error in found)


@pytest.mark.parametrize("quantize", [None, QSGD(4)])
def test_quantizers_and_sizes_that_differ(quantize):
    def quantizers(comm):
        other = QSGD(8) if comm.rank == 2 else quantize
        comm.neighbor_allreduce(X, dec.ring(4), quantize=other)

    def sizes(comm):
        x = X[:32] if comm.rank == 2 else X
        comm.neighbor_allreduce(x, dec.ring(4), quantize=quantize)

    def exchanged_sizes(comm):
        x = X.astype(np.float64) if comm.rank == 2 else X
        peers = dec.ring(4).neighbors(comm.rank)
        comm.neighbor_exchange(x, peers, peers, quantize)

    for body, why in (
        (quantizers, "all ranks must pass the same quantizer"),
        (sizes, "size 32"),
        (exchanged_sizes, "float64"),
    ):
        for error in errors(body, 4):
            assert error.startswith("MismatchError")
            assert why in error


def test_another_collective():
    def body(comm):
        if comm.rank == 1:
            comm.allreduce(X)
        else:
            comm.neighbor_allreduce(X, dec.ring(3))

    for error in errors(body, 3):
        assert error.startswith("MismatchError")
        assert "neighbor_allreduce" in error
        assert "allreduce (sum)" in error


def test_a_message_that_nobody_expects():
    def body(comm):
        comm.neighbor_exchange(X, [1] if comm.rank == 0 else [], [])
        comm.neighbor_exchange(X, [(comm.rank + 1) % 3], [(comm.rank - 1) % 3])

    for error in errors(body, 3):
        assert error.startswith("MismatchError")
        assert "is in call 2, neighbor_exchange, but rank 0 is in call 1" in error


def test_a_rank_that_raises():
    def body(comm):
        for step in range(20):
            if step == 5 and comm.rank == 6:
                raise RuntimeError("out of memory")
            comm.neighbor_allreduce(X, dec.ring(8))

    found = errors(body, 8)
    assert found[6] == "RuntimeError: out of memory"
    for rank, error in enumerate(found):
        if rank != 6:
            assert error.startswith(TransportError.__name__)
            assert "rank 6 has ended" in error


def test_agreement_is_once_per_topology():
    def body(comm):
        counts = []
        for topology in (dec.ring(8), dec.ring(8), dec.star(8), dec.ring(8), dec.star(8)):
            before = comm.stats.messages
            comm.neighbor_allreduce(X, topology)
            counts.append(comm.stats.messages - before - len(topology.receivers(comm.rank)))
        return counts

    assert sparcml.launch(body, 8) == [[3, 0, 3, 0, 0]] * 8
