"""The laws of the collectives, as bodies that run on any engine.

Each takes a communicator and runs on every rank. Every rank computes the vectors of all ranks,
and so the expected result, without communicating; a process computes them once.
"""

from __future__ import annotations

import hashlib
from functools import cache, reduce

import numpy as np

from sparcml import Communicator, Stream
from sparcml.collectives import ALLREDUCES
from sparcml.costs import Workload
from sparcml.stream import densify_if_smaller


def sparse(rng, size, nnz, dtype=np.float32, block=1):
    """Return a stream of small nonzero integers at random indices."""
    indices = np.sort(rng.choice(size // block, nnz, replace=False)).astype(np.uint32)
    values = rng.integers(1, 9, nnz * block) * rng.choice([-1, 1], nnz * block)
    return Stream(size, indices, values.astype(dtype), block=block)


def empty(rng, rank, ranks):
    return sparse(rng, 100, 0)


def size_zero(rng, rank, ranks):
    return sparse(rng, 0, 0)


def size_one(rng, rank, ranks):
    return sparse(rng, 1, rank % 2)


def fewer_entries_than_ranks(rng, rank, ranks):
    return sparse(rng, 3, min(3, rank))


def one_rank_only(rng, rank, ranks):
    return sparse(rng, 1000, 50 if rank == ranks // 2 else 0)


def full_overlap(rng, rank, ranks):
    return Stream(5000, np.arange(7, 4500, 90), rng.integers(1, 9, 50).astype(np.float32))


def no_overlap(rng, rank, ranks):
    return Stream(8 * 997, np.arange(rank, 8 * 997, 16), np.ones(499, "f4"))


def wildly_unequal(rng, rank, ranks):
    return sparse(rng, 20_000, min(15_000, 3 * rank**4))


def one_percent(rng, rank, ranks):
    return sparse(rng, 40_000, 400)


def densifies_on_the_way(rng, rank, ranks):
    return sparse(rng, 3000, 900, np.float64)


def dense(rng, rank, ranks):
    return Stream.from_dense(rng.integers(1, 9, 2001).astype(np.float32))


def some_dense_some_sparse(rng, rank, ranks):
    return sparse(rng, 1234, 1000 if rank % 2 else 10)


def embedding_rows(rng, rank, ranks):
    return sparse(rng, 640 * 16, 30 + rank, block=16)


def everything_in_one_range(rng, rank, ranks):
    return Stream(10_000, np.arange(200), rng.integers(1, 9, 200).astype(np.float64))


CASES = (
    empty,
    size_zero,
    size_one,
    fewer_entries_than_ranks,
    one_rank_only,
    full_overlap,
    no_overlap,
    wildly_unequal,
    one_percent,
    densifies_on_the_way,
    dense,
    some_dense_some_sparse,
    embedding_rows,
    everything_in_one_range,
)

# The union of all indices is that of one rank, so that a lossy allreduce is lossless.
ROOM_FOR_ALL = (
    empty,
    size_zero,
    size_one,
    one_rank_only,
    full_overlap,
    dense,
    everything_in_one_range,
)


def int32_counts(rng, rank, ranks):
    return sparse(rng, 3000, 100 + 500 * (rank % 3), np.int32)


def int32_rows(rng, rank, ranks):
    return sparse(rng, 64 * 16, 60 if rank % 2 else 3, np.int32, block=16)


def int64_wraps(rng, rank, ranks):
    limits = np.iinfo(np.int64)
    return Stream.from_dense(rng.integers(limits.min, limits.max, 1500, endpoint=True))


def int64_short(rng, rank, ranks):
    return Stream(3, [rank % 3], np.array([2**62 + rank]))


INTEGERS = (int32_counts, int32_rows, int64_wraps, int64_short)

IDENTITY = {"sum": 0.0, "min": np.inf, "max": -np.inf, "prod": 1.0}
COMBINE = {"sum": np.add, "min": np.minimum, "max": np.maximum, "prod": np.multiply}


@cache
def inputs_of(case, ranks):
    """Return the streams of all ranks."""
    return _read_only(case(np.random.default_rng(r), r, ranks) for r in range(ranks))


@cache
def positive(case, ranks):
    """Return the same streams with positive values, whose sums are never zero."""
    inputs = inputs_of(case, ranks)
    return _read_only(
        Stream(x.size, x.indices, abs(x.values), block=x.block) for x in inputs
    )


def _read_only(streams):
    """Return the streams with read-only values, since many checks share them."""
    streams = tuple(streams)
    for x in streams:
        x.raw_values.flags.writeable = False
    return streams


@cache
def reduced(case, ranks, op):
    """Return the expected dense result."""
    inputs = inputs_of(case, ranks)
    fill = IDENTITY[op]
    if inputs[0].dtype.kind == "i" and np.isinf(fill):
        limits = np.iinfo(inputs[0].dtype)
        fill = limits.max if fill > 0 else limits.min
    total = reduce(COMBINE[op], [filled(x, fill) for x in inputs])
    total.flags.writeable = False
    return total


def filled(x: Stream, fill: float):
    """Return the dense values with absent entries replaced by `fill`."""
    values = np.full((x.blocks, x.block), fill, x.dtype)
    values[x.indices] = x.values.reshape(-1, x.block)
    return values.reshape(-1)


def same_sum(comm: Communicator, algorithm: str, case, op: str = "sum") -> Stream:
    """Law 1: the dense reduction, exactly, on every rank."""
    inputs = inputs_of(case, comm.size)
    expected = reduced(case, comm.size, op)
    result = comm.allreduce(inputs[comm.rank], op=op, algorithm=algorithm)
    np.testing.assert_array_equal(result.to_dense(), expected)
    shape = (inputs[0].size, inputs[0].block, expected.dtype)
    assert (result.size, result.block, result.dtype) == shape
    assert not result.values.flags.writeable
    assert not result.indices.flags.writeable
    return result


def largest_sums(comm: Communicator, algorithm: str, case) -> Stream:
    """Law 1 of lossy algorithms: the exact k largest sums, with ties; k of one rank."""
    inputs = inputs_of(case, comm.size)
    total = np.sum([x.to_dense() for x in inputs], axis=0, dtype=inputs[0].dtype)
    with comm.duplicate() as fresh:  # without state of earlier calls
        k = max(densify_if_smaller(x).nnz for x in inputs)
        result, seen = fresh.allreduce(
            inputs[comm.rank], "sum", algorithm, return_seen=True
        )
        parts = fresh.allgather(seen.to_dense())
    norms = np.linalg.norm(total.reshape(-1, inputs[0].block), axis=1)
    threshold = np.sort(norms)[-min(k, len(norms)) :].min(initial=np.inf) if k else np.inf
    selected = (norms >= threshold) & (norms > 0)
    if comm.size > 1:
        total = np.where(np.repeat(selected, inputs[0].block), total, 0)
    np.testing.assert_array_equal(result.to_dense(), total)
    np.testing.assert_array_equal(np.sum(parts, axis=0), total)
    return result


def fingerprint(x: Stream):
    """Return a digest of the bits of a stream, as a vector to exchange."""
    bits = x.indices.tobytes() + x.values.tobytes() + bytes([x.is_dense])
    return np.frombuffer(hashlib.sha256(bits).digest(), np.uint8).astype(np.float32)


def same_bits(comm: Communicator, algorithm: str, op: str) -> None:
    """Law 2: the same bits on all ranks and in a second call, for sums that round."""
    rng = np.random.default_rng(100 + comm.rank)
    x = sparse(rng, 6000, 700)
    special = rng.choice([0.1, 1 / 3, np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40], x.nnz)
    x = Stream(x.size, x.indices, (x.values * 0.37 + special).astype(np.float32))
    first = comm.allreduce(x, op=op, algorithm=algorithm)
    second = comm.allreduce(x, op=op, algorithm=algorithm)
    np.testing.assert_array_equal(fingerprint(first), fingerprint(second))
    for other in comm.allgather(fingerprint(first)):
        np.testing.assert_array_equal(other, fingerprint(first))
    nans = first.values.view(np.uint32)[np.isnan(first.values)]
    assert set(nans.tolist()) <= {0x7FC00000}


def nan_stays(comm: Communicator, algorithm: str, op: str) -> None:
    """NaN propagates, also in vectors that the engine's own allreduce reduces."""
    x = np.ones(300_000, np.float32)
    x[comm.rank :: 2 * comm.size] = np.nan
    total = comm.allreduce(x, op=op, algorithm=algorithm)
    expected = np.zeros(len(x), bool)
    for rank in range(comm.size):
        expected[rank :: 2 * comm.size] = True
    np.testing.assert_array_equal(np.isnan(total), expected)
    assert set(total.view(np.uint32)[expected].tolist()) == {0x7FC00000}


def declared_cost(comm: Communicator, algorithm: str, case) -> None:
    """Law 6: the declared messages are sent, with bytes within the declared bounds."""
    a = ALLREDUCES[algorithm]
    if a.warm_cost is None:
        _declared_cost(comm, algorithm, case, a.cost)
        return
    with comm.duplicate() as fresh:
        _declared_cost(fresh, algorithm, case, a.cost)
        _declared_cost(fresh, algorithm, case, a.warm_cost)


def _declared_cost(comm: Communicator, algorithm: str, case, cost) -> None:
    inputs = positive(case, comm.size)
    x = inputs[comm.rank]
    nnz = tuple(i.nnz for i in inputs)
    workload = Workload(x.blocks, x.entry_bytes, nnz, comm._transport.nodes)
    comm.stats.reset()
    comm.stats.sent = []
    comm.allreduce(x, algorithm=algorithm)
    counted, comm.stats.sent = comm.stats.sent, None
    declared = [
        (peer, *bounds(counts, x.entry_bytes))
        for stage in cost(comm.rank, workload)
        for peer, counts in stage.sends
    ]
    assert [peer for peer, _ in counted] == [peer for peer, _, _ in declared]
    for (_, nbytes), (_, low, high) in zip(counted, declared, strict=True):
        assert low <= nbytes <= high
    if case is dense:
        assert [n for _, n in counted] == [low for _, low, _ in declared]
        assert [n for _, n in counted] == [high for _, _, high in declared]


def computed_cost(comm: Communicator, algorithm: str, case) -> None:
    """Law 6 of an engine's own algorithm: its computed bytes are the declared ones."""
    inputs = positive(case, comm.size)
    x = inputs[comm.rank]
    nnz = tuple(i.nnz for i in inputs)
    workload = Workload(x.blocks, x.entry_bytes, nnz, comm._transport.nodes)
    comm.stats.reset()
    comm.stats.sent = []
    comm.allreduce(x, algorithm=algorithm)
    agreed, comm.stats.sent = sum(n for _, n in comm.stats.sent), None
    computed = comm.stats.computed_bytes
    assert comm.stats.bytes == agreed + computed
    rounds = ALLREDUCES[algorithm].cost(comm.rank, workload)
    assert abs(sum(r.expected_nbytes(x.entry_bytes) for r in rounds) - computed) < 1
    if comm.size > 1:
        (explained,) = (
            e.nbytes for e in comm.explain(x).estimates if e.algorithm == algorithm
        )
        assert abs(explained - max(comm.allgather(float(computed)))) < 1


def bounds(counts, entry_bytes):
    """Return the least and the largest number of bytes of a message."""
    sizes = [count.nbytes(entry_bytes) for count in counts]
    return sum(s[0] for s in sizes), sum(s[1] for s in sizes)
