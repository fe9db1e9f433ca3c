"""The laws of alltoall and of integer vectors, as bodies that run on any engine."""

from __future__ import annotations

import numpy as np
import pytest

from sparcml import Half, Stream
from sparcml.collectives.alltoall import cost as alltoall_cost
from sparcml.costs.workload import EntryCount

from . import laws


def alltoall(comm):
    """Every rank gets what the others sent it, whatever its type and size, in declared cost."""
    P, me = comm.size, comm.rank

    def item(source, target):
        rng, kind = np.random.default_rng([source, target]), (source + target) % 4
        if kind == 0:
            return laws.sparse(rng, 50 + source, 5 + target % 3)
        if kind == 1:
            return rng.standard_normal(3 * source + target)
        return source - target if kind == 2 else 0.5 * target

    for received in (
        comm.alltoall([item(me, target) for target in range(P)]),
        comm.ialltoall(tuple(item(me, target) for target in range(P))).wait(),
    ):
        for source, got in enumerate(received):
            want = item(source, me)
            assert type(got) is type(want)
            if isinstance(got, Stream):
                np.testing.assert_array_equal(laws.fingerprint(got), laws.fingerprint(want))
            else:
                np.testing.assert_array_equal(got, want)
            if isinstance(got, np.ndarray):
                assert not got.flags.writeable
    rows = np.arange(4.0 * P).reshape(P, 4) + 100 * me
    out = np.zeros((P, 4))
    assert comm.alltoall(list(rows), out=out) is out
    np.testing.assert_array_equal(out, [rows[me] + 100 * (r - me) for r in range(P)])
    for case in laws.CASES:
        _alltoall_cost(comm, [laws.positive(case, P)[(me + r) % P] for r in range(P)])
    with pytest.raises(TypeError, match=r"alltoall: vectors must be a list.* got ndarray"):
        comm.alltoall(rows)
    with pytest.raises(ValueError, match=f"one vector for each of {P} ranks, got {P + 1}"):
        comm.ialltoall([1.0] * (P + 1))
    comm.barrier()


def _alltoall_cost(comm, vectors):
    """Law 6 of alltoall; the sender knows its entries, so that dense bytes are exact."""
    comm.stats.sent = []
    comm.alltoall(vectors)
    counted, comm.stats.sent = comm.stats.sent, None
    counts = [EntryCount(x.nnz, x.nnz, x.nnz, x.blocks) for x in vectors]
    declared = [send for stage in alltoall_cost(comm.rank, counts) for send in stage.sends]
    assert [peer for peer, _ in counted] == [peer for peer, _ in declared]
    for (peer, nbytes), (_, (count,)) in zip(counted, declared, strict=True):
        low, high = count.nbytes(vectors[peer].entry_bytes)
        assert low <= nbytes <= high
        assert low == high == nbytes or count.min < count.blocks


def integers(comm):
    """Integers keep their dtype in every collective, wrap as in NumPy, and are never lossy."""
    P, me = comm.size, comm.rank
    cut = [6 * rank // P for rank in range(P + 1)]
    for dtype in (np.int32, np.int64):
        top = np.iinfo(dtype).max
        inputs = [np.array([[0, r, top], [-r, 7, top - r]], dtype) for r in range(P)]
        total = np.add.reduce(inputs, dtype=dtype)
        for result, want in (
            (comm.allreduce(inputs[me]), total),
            (comm.iallreduce(inputs[me], "max").wait(), np.maximum.reduce(inputs)),
            (
                comm.reduce(inputs[me], P - 1, "prod"),
                np.multiply.reduce(inputs, dtype=dtype),
            ),
            (comm.reduce_scatter(inputs[me]), total.reshape(-1)[cut[me] : cut[me + 1]]),
            (comm.broadcast(inputs[me] if me == 0 else None), inputs[0].reshape(-1)),
            (comm.allgather(inputs[me]), inputs),
            (comm.alltoall([inputs[me]] * P), inputs),
            (comm.allreduce(inputs[me], out=np.empty((2, 3), dtype)), total),
        ):
            if result is not None:
                np.testing.assert_array_equal(np.ravel(result), np.ravel(want))
                assert np.asarray(result).dtype == dtype
        x = Stream(500, [me, 400], np.array([top, me], dtype))
        assert comm.allreduce(x, "min").to_dense()[499] == top
        for arguments, why in (
            ({"op": "mean"}, "op mean requires float values, got int"),
            ({"quantize": Half()}, r"quantize=Half.* requires float values, got int"),
            ({"algorithm": "oktopk"}, "algorithm oktopk requires float values, got int"),
        ):
            with pytest.raises(TypeError, match=why):
                comm.allreduce(x, **arguments)
        with pytest.raises(ValueError, match="out must have 500 values of int"):
            comm.allreduce(x, out=np.zeros(500))
    for vector, why in (
        (np.ones(3, np.uint64), "int32 or int64, got uint64; convert them with .astype"),
        (np.ones(3, bool), "int32 or int64, got bool; convert them with .astype"),
    ):
        with pytest.raises(TypeError, match=why):
            comm.allreduce(vector)
    comm.barrier()
