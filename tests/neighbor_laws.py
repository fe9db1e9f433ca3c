"""The laws of the collectives with neighbours, as bodies that run on any engine."""

from __future__ import annotations

from functools import cache
from threading import Lock

import numpy as np

from sparcml import QSGD, Half, Stream
from sparcml import decentralized as dec
from sparcml.collectives.neighbor_allreduce import cost as allreduce_cost
from sparcml.collectives.neighbor_exchange import cost as exchange_cost
from sparcml.costs import Workload
from sparcml.costs.workload import EntryCount

from . import laws, rosters
from .exchange_laws import EXCHANGES

LOCK = Lock()
SOME_CASES = (laws.one_percent, laws.dense, laws.embedding_rows)


def topologies(ranks):
    """Every topology of the roster with a few of its steps."""
    for topology in _built(ranks):
        for step in sorted({0, 4 * topology.period - 1}):
            yield topology, step


@cache
def _built(ranks):
    return [build(ranks) for build in rosters.TOPOLOGIES.values()]


def mixed(inputs, topology, rank, step):
    """The weighted sum of dense vectors in the order of the ranks, in float64."""
    row = topology.matrix(step)[rank]
    used = [j for j in range(len(inputs)) if row[j] != 0]
    total = row[used[0]] * inputs[used[0]].astype(np.float64)
    for j in used[1:]:
        total = total + row[j] * inputs[j].astype(np.float64)
    return total.astype(inputs[0].dtype)


def expected(case, topology, step):
    """The results of all ranks; those that are threads compute them once."""
    with LOCK:
        return _expected(case, topology, step)


@cache
def _expected(case, topology, step):
    dense = [x.to_dense() for x in laws.inputs_of(case, topology.size)]
    results = [mixed(dense, topology, rank, step) for rank in range(topology.size)]
    product = topology.matrix(step) @ np.array(dense, np.float64)
    np.testing.assert_allclose(results, product, rtol=1e-6, atol=1e-6)
    return results


def neighbor_mean(comm):
    """The result is the row of W @ X to the last bit, for every topology and every case."""
    P, me = comm.size, comm.rank
    for topology, step in topologies(P):
        for case in laws.CASES if topology == dec.ring(P) else SOME_CASES:
            x = laws.inputs_of(case, P)[me]
            result = comm.neighbor_allreduce(x, topology, step)
            assert isinstance(result, Stream)
            assert (result.size, result.block, result.dtype) == (x.size, x.block, x.dtype)
            want = expected(case, topology, step % topology.period)[me]
            np.testing.assert_array_equal(result.to_dense(), want)


def neighbor_mean_is_kept(comm):
    """The sum over the ranks is exact on integers if all weights are powers of two."""
    P, me = comm.size, comm.rank
    count = 0
    for topology, step in topologies(P):
        exponents = np.log2(topology.matrix(step)[topology.matrix(step) > 0])
        if not topology.is_column_stochastic or (exponents != np.round(exponents)).any():
            continue
        count += 1
        inputs = [np.random.default_rng(r).integers(-99, 99, 500) * 1.0 for r in range(P)]
        for dtype in (np.float32, np.float64):
            results = comm.allgather(
                comm.neighbor_allreduce(inputs[me].astype(dtype), topology, step)
            )
            np.testing.assert_array_equal(np.sum(results, 0), np.sum(inputs, 0))
    assert count >= 4


def neighbor_same_bits(comm):
    """Two calls give the same bits, also of special values; NaN is the canonical one."""
    P, me = comm.size, comm.rank
    rng = np.random.default_rng(me)
    special = rng.choice([0.1, 1 / 3, np.nan, -np.nan, np.inf, -np.inf, 1e-40], 3000)
    dense = (special + rng.standard_normal(3000)).astype(np.float32)
    indices = np.sort(rng.choice(40_000, 3000, replace=False))
    for x in (Stream.from_dense(dense), Stream(40_000, indices, dense)):
        for topology in (dec.ring(P), dec.base_graph(P), dec.star(P)):
            first = comm.neighbor_allreduce(x, topology)
            second = comm.ineighbor_allreduce(x, topology).wait()
            np.testing.assert_array_equal(laws.fingerprint(first), laws.fingerprint(second))
            nans = first.values.view(np.uint32)[np.isnan(first.values)]
            assert set(nans.tolist()) <= {0x7FC00000}
    same = np.full(500, 1 / 3 + 1e-3, np.float32)  # ranks that agree stay as they are
    assert comm.neighbor_allreduce(same, dec.ring(P)).tobytes() == same.tobytes()


def neighbor_cost(comm):
    """Counted messages and bytes are the declared ones."""
    P, me = comm.size, comm.rank
    for topology, step in topologies(P):
        neighbors, receivers = topology.neighbors(me, step), topology.receivers(me, step)
        comm.neighbor_allreduce(np.ones(1), topology, step)  # all ranks know it from now on
        for case in (
            laws.CASES if topology == dec.ring(P) else (laws.one_percent, laws.dense)
        ):
            inputs = laws.positive(case, P)
            x, exact = inputs[me], case is laws.dense
            nnz = tuple(i.nnz for i in inputs)
            workload = Workload(x.blocks, x.entry_bytes, nnz, comm._transport.nodes)
            comm.stats.sent = []
            comm.neighbor_allreduce(x, topology, step)
            declared = allreduce_cost(me, workload, neighbors, receivers)
            check_cost(comm, declared, x.entry_bytes, exact=exact)
            if step == 0:
                comm.stats.sent = []
                comm.neighbor_exchange(x, receivers, neighbors)
                count = EntryCount(x.nnz, x.nnz, x.nnz, x.blocks)
                declared = exchange_cost(dict.fromkeys(receivers, count))
                check_cost(comm, declared, x.entry_bytes, exact=exact)


def check_cost(comm, rounds, entry_bytes, *, exact):
    counted, comm.stats.sent = comm.stats.sent, None
    declared = [send for stage in rounds for send in stage.sends]
    assert [peer for peer, _ in counted] == [peer for peer, _ in declared]
    for (_, nbytes), (_, counts) in zip(counted, declared, strict=True):
        low, high = laws.bounds(counts, entry_bytes)
        assert low <= nbytes <= high
        assert low == high or not exact


def neighbor_quantized(comm):
    """Received vectors are quantized once, the rank's own is not."""
    P, me = comm.size, comm.rank
    inputs = [np.random.default_rng(r).standard_normal(700).astype("f4") for r in range(P)]
    halves = [x.astype(np.float16).astype(np.float32) for x in inputs]
    for topology, step in topologies(P):
        received = [x if r == me else halves[r] for r, x in enumerate(inputs)]
        result = comm.neighbor_allreduce(inputs[me], topology, step, Half())
        np.testing.assert_array_equal(result, mixed(received, topology, me, step))
        result = comm.ineighbor_allreduce(inputs[me], topology, step, QSGD(8)).wait()
        want = mixed(inputs, topology, me, step)
        np.testing.assert_allclose(result, want, atol=0.02 * 5 * P)
    x = laws.sparse(np.random.default_rng(me), 5000, 100)
    first, second, other = (
        comm.neighbor_allreduce(x, dec.ring(P), quantize=QSGD(2), seed=s) for s in (7, 7, 8)
    )
    np.testing.assert_array_equal(laws.fingerprint(first), laws.fingerprint(second))
    if P > 1:
        assert (laws.fingerprint(first) != laws.fingerprint(other)).any()


NEIGHBORS = (
    neighbor_mean,
    neighbor_mean_is_kept,
    neighbor_same_bits,
    neighbor_cost,
    neighbor_quantized,
    *EXCHANGES,
)
