"""The laws of the collectives, as bodies that run on any engine.

Each takes a communicator and runs on every rank. Every rank computes the vectors of all ranks,
and so the expected result, without communicating; a process computes them once.
"""

from __future__ import annotations

import hashlib
from functools import cache, reduce

import numpy as np

from sparcml import Communicator, Stream
from sparcml.collectives import ALLREDUCES, Workload
from sparcml.stream import densify_if_smaller


def sparse(rng, size, nnz, dtype=np.float32, block=1):
    """A stream of small whole numbers, none of them zero, at random places."""
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

# All ranks together store no more places than one of them: the largest sums are all sums.
ROOM_FOR_ALL = (
    empty,
    size_zero,
    size_one,
    one_rank_only,
    full_overlap,
    dense,
    everything_in_one_range,
)

NEUTRAL = {"sum": 0.0, "min": np.inf, "max": -np.inf, "prod": 1.0}
COMBINE = {"sum": np.add, "min": np.minimum, "max": np.maximum, "prod": np.multiply}


@cache
def everyones(case, ranks):
    return _sealed(case(np.random.default_rng(r), r, ranks) for r in range(ranks))


@cache
def positive(case, ranks):
    inputs = everyones(case, ranks)
    return _sealed(Stream(x.size, x.indices, abs(x.values), block=x.block) for x in inputs)


def _sealed(streams):
    """They serve many checks, so whoever writes to one of them must not get away with it."""
    sealed = tuple(streams)
    for x in sealed:
        x.raw_values.flags.writeable = False
    return sealed


@cache
def reduced(case, ranks, op):
    total = reduce(COMBINE[op], [filled(x, NEUTRAL[op]) for x in everyones(case, ranks)])
    total.flags.writeable = False
    return total


def filled(x: Stream, fill: float):
    values = np.full((x.blocks, x.block), fill, x.dtype)
    values[x.indices] = x.values.reshape(-1, x.block)
    return values.reshape(-1)


def same_sum(comm: Communicator, algorithm: str, case, op: str = "sum") -> Stream:
    """Law 1: the dense reduction, exactly, on every rank."""
    inputs = everyones(case, comm.size)
    want = reduced(case, comm.size, op)
    got = comm.allreduce(inputs[comm.rank], op=op, algorithm=algorithm)
    np.testing.assert_array_equal(got.to_dense(), want)
    assert (got.size, got.block, got.dtype) == (inputs[0].size, inputs[0].block, want.dtype)
    assert not got.values.flags.writeable
    assert not got.indices.flags.writeable
    return got


def largest_sums(comm: Communicator, algorithm: str, case) -> Stream:
    """Law 1 of those that choose: the exact sums, as many as a rank brings, ties too."""
    inputs = everyones(case, comm.size)
    total = np.sum([x.to_dense() for x in inputs], axis=0, dtype=inputs[0].dtype)
    with comm.duplicate() as fresh:  # nothing to reuse
        k = max(densify_if_smaller(x).nnz for x in inputs)
        got, seen = fresh.allreduce(inputs[comm.rank], "sum", algorithm, return_seen=True)
        parts = fresh.allgather(seen.to_dense())
    sizes = np.linalg.norm(total.reshape(-1, inputs[0].block), axis=1)
    threshold = np.sort(sizes)[-min(k, len(sizes)) :].min(initial=np.inf) if k else np.inf
    kept = (sizes >= threshold) & (sizes > 0)
    if comm.size > 1:
        total = np.where(np.repeat(kept, inputs[0].block), total, 0)
    np.testing.assert_array_equal(got.to_dense(), total)
    np.testing.assert_array_equal(np.sum(parts, axis=0), total)
    return got


def fingerprint(x: Stream):
    bits = x.indices.tobytes() + x.values.tobytes() + bytes([x.is_dense])
    return np.frombuffer(hashlib.sha256(bits).digest(), np.uint8).astype(np.float32)


def same_bits(comm: Communicator, algorithm: str, op: str) -> None:
    """Law 2: identical on all ranks and in a second run, for floats that round."""
    rng = np.random.default_rng(100 + comm.rank)
    x = sparse(rng, 6000, 700)
    special = rng.choice([0.1, 1 / 3, np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40], x.nnz)
    x = Stream(x.size, x.indices, (x.values * 0.37 + special).astype(np.float32))
    first = comm.allreduce(x, op=op, algorithm=algorithm)
    again = comm.allreduce(x, op=op, algorithm=algorithm)
    np.testing.assert_array_equal(fingerprint(first), fingerprint(again))
    for other in comm.allgather(fingerprint(first)):
        np.testing.assert_array_equal(other, fingerprint(first))
    nans = first.values.view(np.uint32)[np.isnan(first.values)]
    assert set(nans.tolist()) <= {0x7FC00000}


def nan_stays(comm: Communicator, algorithm: str, op: str) -> None:
    """NaN wins, in vectors large and dense enough for the engine's own allreduce too."""
    x = np.ones(300_000, np.float32)
    x[comm.rank :: 2 * comm.size] = np.nan
    total = comm.allreduce(x, op=op, algorithm=algorithm)
    want = np.zeros(len(x), bool)
    for rank in range(comm.size):
        want[rank :: 2 * comm.size] = True
    np.testing.assert_array_equal(np.isnan(total), want)
    assert set(total.view(np.uint32)[want].tolist()) == {0x7FC00000}


def declared_cost(comm: Communicator, algorithm: str, case) -> None:
    """Law 6: the declared messages, and bytes within the declared bounds."""
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
        (peer, *bounds(loads, x.entry_bytes))
        for turn in cost(comm.rank, workload)
        for peer, loads in turn.sends
    ]
    assert [peer for peer, _ in counted] == [peer for peer, _, _ in declared]
    for (_, nbytes), (_, least, most) in zip(counted, declared, strict=True):
        assert least <= nbytes <= most
    if case is dense:
        assert [n for _, n in counted] == [least for _, least, _ in declared]
        assert [n for _, n in counted] == [most for _, _, most in declared]


def bounds(loads, entry_bytes):
    sizes = [load.nbytes(entry_bytes) for load in loads]
    return sum(s[0] for s in sizes), sum(s[1] for s in sizes)
