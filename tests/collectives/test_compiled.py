"""Compiled collectives against their definitions: the same bits, message for message."""

import threading
from itertools import product
from typing import Any

import numpy as np
import pytest

from sparcml.collectives.compiled import ALGORITHMS
from sparcml.communicator import Communicator
from sparcml.errors import MismatchError, WireError
from sparcml.stream import OPS, Stream
from sparcml.transport import ThreadGroup, ThreadTransport

DTYPES = (np.float32, np.float64, np.int32, np.int64)
# blocks, block, entries, how they lie
INPUTS = (
    (5000, 1, 12, "spread"),  # gap
    (64, 1, 40, "spread"),  # bitmap, then dense
    (300, 3, 20, "spread"),
    (4_000_000_000, 1, 2, "spread"),  # u32
    (400, 1, 400, "spread"),  # dense
    (500, 2, 0, "spread"),
    (7, 1, 1, "spread"),
    (640, 1, 200, "dense zeros"),  # a dense vector with many zeros
    (640, 1, 630, "dense zeros"),
    (96, 4, 11, "dense zeros"),
    (0, 1, 0, "spread"),
)


class Recorder(ThreadTransport):
    """Thread that keeps the messages that it sends."""

    def __init__(self, group, rank):
        super().__init__(group, rank, 20.0)
        self.sent = []

    def isend(self, peer, message):
        self.sent.append((peer, message.tobytes()))
        return super().isend(peer, message)


def run(body, ranks, compiled):
    """Return what body(comm) returned or raised on each rank, and what the ranks sent."""
    group = ThreadGroup(ranks)
    recorders = [Recorder(group, rank) for rank in range(ranks)]
    results: list[Any] = [None] * ranks

    def work(rank):
        comm = Communicator(recorders[rank])
        if rank not in compiled:
            comm._session.use_python()
        try:
            results[rank] = body(comm)
        except Exception as error:
            recorders[rank].abort(error)
            results[rank] = error

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results, [r.sent for r in recorders]


def vector(rank, dtype, case):
    blocks, block, nnz, kind = case
    rng = np.random.default_rng((rank, blocks, nnz))
    nnz = max(0, nnz - rank % 3)
    if blocks > 1_000_000:
        indices = np.unique(rng.integers(0, blocks, nnz))
    else:
        indices = np.sort(rng.choice(blocks, nnz, replace=False))
    values = rng.standard_normal(len(indices) * block) * 100
    values[::5] = [0.0, -0.0, np.inf, np.nan][rank % 4] if dtype in DTYPES[:2] else 3
    values = values.astype(dtype)
    if kind == "spread":
        return Stream(blocks * block, indices, values, block=block)
    dense = np.zeros((blocks, block), dtype)
    dense[indices] = values.reshape(-1, block)
    return Stream.unchecked(blocks * block, None, dense.reshape(-1), block)


def bits(x):
    indices = None if x.raw_indices is None else x.raw_indices.tobytes()
    return x.size, x.block, x.fill, x.dtype, indices, x.raw_values.tobytes()


@pytest.mark.parametrize("ranks", range(1, 10))
def test_equals_the_definition(ranks):
    """All types and operations, with inputs in turn; ranks of both kinds in one call too."""
    cases = [
        (algorithm, dtype, op, INPUTS[(11 * i + ranks) % len(INPUTS)])
        for i, (algorithm, dtype, op) in enumerate(product(ALGORITHMS, DTYPES, OPS))
    ]
    cases += [(a, np.float32, "sum", case) for a, case in product(ALGORITHMS, INPUTS)]

    def body(comm):
        found = []
        for algorithm, dtype, op, case in cases:
            if algorithm == "dsar_split_allgather" and case[0] > 1_000_000:
                continue  # its result is dense
            x = vector(comm.rank, dtype, case)
            if op != "sum":
                x = Stream.unchecked(x.size, x.raw_indices, x.raw_values, x.block)
            with np.errstate(all="ignore"):
                found.append(bits(comm.allreduce(x, op, algorithm)))
        comm.barrier()
        return found, comm.stats.messages, comm.stats.bytes, comm.stats.received_bytes

    defined, messages = run(body, ranks, compiled=())
    for group in (range(ranks), range(0, ranks, 2)):
        results, sent = run(body, ranks, compiled=group)
        assert results == defined
        assert sent == messages


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_agreement_equals_the_definition(ranks):
    """`auto` agrees in the first call; different sizes are reported alike."""

    def body(comm):
        x = vector(comm.rank, np.float32, INPUTS[0])
        found = [bits(comm.allreduce(x)), comm.explain(x).workload.nnz]
        with pytest.raises(MismatchError) as raised:
            comm.explain(np.zeros(3 + comm.rank % 2))
        return [*found, str(raised.value)]

    defined, messages = run(body, ranks, compiled=())
    for group in (range(ranks), range(1, ranks, 2)):
        assert run(body, ranks, compiled=group) == (defined, messages)


@pytest.mark.parametrize("ranks", [2, 3, 5, 8])
def test_allgather_equals_the_definition(ranks):
    """Vectors of one shape, of another on some ranks, and numbers; ranks of both kinds."""

    def item(rank, case):
        kind = case % 4
        if kind == 3:
            return (rank, float(rank), rank % 2 == 0)[case % 3]
        x = vector(rank, DTYPES[case % 4], INPUTS[case % len(INPUTS)])
        if kind == 1 and rank % 2:  # another size
            return vector(rank, np.float64, INPUTS[0])
        return 7 if kind == 2 and rank == 1 else x

    def read(x):
        return bits(x) if isinstance(x, Stream) else (type(x), x)

    def body(comm):
        found = [
            [read(x) for x in comm.allgather(item(comm.rank, case))] for case in range(12)
        ]
        found.append([comm.allreduce(comm.rank + 0.5, op) for op in ("sum", "max")])
        with pytest.raises(ValueError, match="requires a vector"):
            comm.allgather(1, out=np.zeros(3))
        return found, comm.stats.messages, comm.stats.bytes, comm.stats.received_bytes

    defined, messages = run(body, ranks, compiled=())
    assert all(isinstance(found, tuple) for found in defined), defined
    for group in (range(ranks), range(0, ranks, 2)):
        results, sent = run(body, ranks, compiled=group)
        assert results == defined
        assert sent == messages


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8])
def test_allgather_add_equals_the_definition(ranks):
    """Sparse, dense and mixed vectors, added in rank order, by the messages of allgather."""

    def body(comm):
        found = []
        for dtype, case in product(DTYPES, INPUTS):
            if case[0] > 1_000_000:
                continue  # the array is dense
            x = vector(comm.rank, dtype, case)
            if comm.rank % 2:
                x = Stream.from_dense(x.to_dense())
            out = np.arange(case[0] * case[1]).astype(dtype)
            expected = out.copy()
            with np.errstate(all="ignore"):
                comm._allgather_add(x, out)
                for part in comm.allgather(x):
                    expected += part.to_dense()
            np.testing.assert_array_equal(out, expected)
            found.append(out.tobytes())
        other = np.zeros(4 + (comm.rank == 1))
        if ranks > 1:
            with pytest.raises(MismatchError, match="allgather_add: vectors must have"):
                comm._allgather_add(Stream.from_dense(other), other)
        return found, comm.stats.messages, comm.stats.bytes

    defined, messages = run(body, ranks, compiled=())
    assert all(isinstance(found, tuple) for found in defined), defined
    for group in (range(ranks), range(0, ranks, 2)):
        results, sent = run(body, ranks, compiled=group)
        assert results == defined
        assert sent == messages


def test_errors_are_those_of_the_definition():
    """A wrong size, round or checksum raises the error that Python's checks raise."""

    def sizes(comm):
        comm.allreduce(Stream(100 + comm.rank, [1], [1.0]), algorithm="ssar_ring")

    def calls(comm):
        if comm.rank:
            comm.barrier()
        else:
            comm.allreduce(Stream(9, [1], [1.0]), algorithm="ssar_recursive_double")

    def damaged(comm):
        if comm.rank == 0:
            comm.allreduce(Stream(9, [1], [1.0]), algorithm="ssar_recursive_double")
            return
        send = comm._transport.isend

        def isend(peer, message):
            changed = message.copy()
            changed[-1] ^= 1
            return send(peer, changed)

        comm._transport.isend = isend
        comm.allreduce(Stream(9, [1], [1.0]), algorithm="ssar_recursive_double")

    def damaged_bundle(comm):
        if comm.rank == 1:
            send = comm._transport.isend
            comm._transport.isend = lambda peer, message: send(peer, message[:-8].copy())
        comm.allgather(Stream(9, [1], [1.0]))

    for body, kind in (
        (damaged_bundle, WireError),
        (sizes, MismatchError),
        (calls, MismatchError),
        (damaged, WireError),
    ):
        defined, _ = run(body, 2, compiled=())
        for group in ((0, 1), (0,), (1,)):
            found, _ = run(body, 2, compiled=group)
            assert isinstance(found[0], kind)
            assert str(found[0]) in {str(error) for error in defined}


def test_messages_may_begin_at_any_byte():
    """Engines need not align what they receive; sections are read as words."""

    def body(comm):
        send = comm._transport.isend
        comm._transport.isend = lambda peer, message: send(
            peer, np.append(np.uint8(0), message)[1:]
        )
        case = (5000, 1, 12, "spread")
        return [bits(comm.allreduce(vector(comm.rank, t, case), "sum", a))
                for a in ALGORITHMS for t in DTYPES]  # fmt: skip

    defined, _ = run(body, 3, compiled=())
    found, _ = run(body, 3, compiled=range(3))
    assert found == defined
