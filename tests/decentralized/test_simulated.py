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


@pytest.mark.slow
def test_a_thousand_ranks_mix():
    topology = dec.one_peer_exponential(1024)

    def body(comm):
        x = np.array([comm.rank, -1.0])
        for step in range(topology.period):
            x = comm.neighbor_allreduce(x, topology, step)
        return x

    results = sparcml.simulate(body, 1024, "1gbit", trace=0).results
    np.testing.assert_array_equal(results, [[511.5, -1.0]] * 1024)


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
