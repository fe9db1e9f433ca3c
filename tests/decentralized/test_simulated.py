"""Gossip on simulated ranks: bytes, time, and many ranks."""

import numpy as np
import pytest

import sparcml
from sparcml import decentralized as dec
from sparcml.collectives.neighbor_allreduce import cost
from sparcml.costs import Workload
from sparcml.network.presets import network

SIZE = 100_000


def one_step(topology, size=SIZE, net="1gbit"):
    """Return the simulated seconds and bytes per rank of a step, without the agreement."""

    def body(comm):
        x = np.full(size, comm.rank + 1.0, np.float32)
        comm.neighbor_allreduce(x, topology)
        comm.barrier()
        start, sent = comm.now(), comm.stats.bytes
        comm.neighbor_allreduce(x, topology, 1)
        return comm.now() - start, comm.stats.bytes - sent

    results = sparcml.simulate(body, topology.size, net, trace=0).results
    return max(seconds for seconds, _ in results), {sent for _, sent in results}


@pytest.mark.parametrize("n", [4, 8, 32, 112])
def test_bytes_per_rank_do_not_depend_on_the_number_of_ranks(n):
    message = 32 + 4 * SIZE
    for topology in (dec.ring(n), dec.one_peer_exponential(n)):
        seconds, sent = one_step(topology)
        assert sent == {topology.degree * message}
        wire = topology.degree * message * 8 / 1e9
        assert wire < seconds < 1.3 * wire + 1e-3


@pytest.mark.parametrize(
    "topology",
    [
        dec.ring(8),
        dec.torus(4, 4),
        dec.exponential(16),
        dec.base_graph(8),
        dec.complete(6),
        dec.star(6),
        dec.random_regular(16, 4),
    ],
    ids=repr,
)
@pytest.mark.parametrize("net", ["1gbit", "100mbit", "10gbit"])
def test_declared_cost_predicts_the_time(topology, net):
    seconds, _ = one_step(topology, net=net)
    workload = Workload(SIZE, 4, (SIZE,) * topology.size)
    predicted = max(
        network(net).seconds(
            cost(r, workload, topology.neighbors(r, 1), topology.receivers(r, 1)), 4
        )
        for r in range(topology.size)
    )
    assert seconds == pytest.approx(predicted, rel=0.25)


def test_hundreds_of_ranks_mix():
    topology = dec.one_peer_exponential(256)

    def body(comm):
        x = np.array([comm.rank, -1.0])
        for step in range(topology.period):
            x = comm.neighbor_allreduce(x, topology, step)
        return x

    results = sparcml.simulate(body, 256, "1gbit", trace=0).results
    np.testing.assert_array_equal(results, [[127.5, -1.0]] * 256)


def test_the_first_step_of_many_ranks_sends_few_messages():
    """Ranks compare their methods without a message from each to each."""
    ranks = 100
    method = dec.DCD(dec.ring(ranks), sparcml.QSGD(4))

    def body(comm):
        x = np.zeros(50, np.float32)
        method.step(comm, x, x, method.init(x), lr=0.1)
        return comm.stats.messages

    assert max(sparcml.simulate(body, ranks, "1gbit", trace=0).results) < ranks


def test_a_slow_rank_slows_a_ring_hop_by_hop():
    """At a distance of d, k steps take k + 4 max(0, k - d + 1) if one rank needs 5 for a step."""
    steps = 6

    def body(comm):
        times = []
        comm.neighbor_allreduce(np.zeros(2), dec.ring(8))  # all ranks compare the topology
        for step in range(steps):
            comm.advance(5.0 if comm.rank == 0 else 1.0)
            comm.neighbor_allreduce(np.zeros(2), dec.ring(8), step)
            times.append(comm.now())
        return times

    results = sparcml.simulate(body, 8, "1gbit", trace=0).results
    for rank, times in enumerate(results[1:], start=1):
        distance = min(rank, 8 - rank)
        expected = [k + 4 * max(0, k - distance + 1) for k in range(1, steps + 1)]
        assert times == pytest.approx(expected, abs=0.01)


def test_one_of_many_ranks_differs():
    def body(comm):
        x = np.zeros(5)
        method = dec.DPSGD(dec.ring(70), momentum=0.5 if comm.rank == 69 else 0.0)
        method.step(comm, x, x, method.init(x), lr=0.1)

    with pytest.raises(sparcml.MismatchError, match="rank 69 differ in method"):
        sparcml.simulate(body, 70, "1gbit", trace=0)


@pytest.mark.parametrize("n", [5, 25, 42])
@pytest.mark.parametrize("degree", [1, 3])
def test_base_graph_averages_any_number_of_ranks(n, degree):
    topology = dec.base_graph(n, degree)

    def body(comm):
        x = np.random.default_rng(comm.rank).standard_normal(10)
        for step in range(topology.period):
            x = comm.neighbor_allreduce(x, topology, step)
        return x

    results = sparcml.simulate(body, n, "1gbit", trace=0).results
    vectors = [np.random.default_rng(r).standard_normal(10) for r in range(n)]
    np.testing.assert_allclose(results, [np.mean(vectors, 0)] * n, atol=1e-14)


def test_quantized_messages_are_smaller():
    def body(comm):
        x = np.random.default_rng(comm.rank).standard_normal(SIZE).astype(np.float32)
        sent = []
        for quantize in (None, None, sparcml.QSGD(4)):
            comm.stats.reset()
            comm.neighbor_allreduce(x, dec.ring(4), quantize=quantize)
            sent.append(comm.stats.bytes)
        return sent

    _, dense, coded = sparcml.simulate(body, 4, "1gbit").results[0]
    assert dense > 7.5 * coded


def test_the_trace_names_the_topology():
    def body(comm):
        for step in range(2):
            comm.neighbor_allreduce(np.ones(100), dec.one_peer_exponential(4), step)

    sim = sparcml.simulate(body, 4, "1gbit")
    events = sim.trace["traceEvents"]
    assert "neighbor_allreduce" in {event["name"] for event in events}
    calls = {event["args"]["call"] for event in events if "call" in event.get("args", {})}
    assert "neighbor_allreduce (one_peer_exponential(4) at step 1) #3" in calls
