"""The checks on MPI; test_laws.py starts it as `laws_on_mpi.py FILE`."""

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

import sparcml
from sparcml.errors import MismatchError
from tests import laws, rosters, waiting
from tests.engine_checks import law_checks, run_checks


def world(comm):
    assert comm.engine == "mpi"
    assert comm._transport.nodes.leaders == (0,)  # all on this machine


def nan_stays(comm):
    for op in rosters.OPS:
        laws.nan_stays(comm, "auto", op)


def native_arrays(comm):
    """Arrays reach the library in one call, agreement included, and leave it read-only."""
    size = 600_000  # more than one part
    base = np.arange(size) % 97
    ranks = range(comm.size)
    for dtype in (np.float32, np.float64, np.int32, np.int64):
        x = (base + comm.rank).astype(dtype).reshape(2, -1)
        comm.stats.reset()
        y = comm.allreduce(x, algorithm="native")
        want = np.sum([base + rank for rank in ranks], axis=0).astype(dtype).reshape(2, -1)
        assert (y.dtype, y.flags.writeable) == (x.dtype, False)
        np.testing.assert_array_equal(y, want)
        # Strided arrays and streams take another way, with the same messages.
        messages, native = comm.stats.messages, comm.stats.computed_bytes
        np.testing.assert_array_equal(
            comm.allreduce(x.T, algorithm="native"), np.asarray(want.T)
        )
        comm.allreduce(sparcml.Stream.from_dense(x), algorithm="native")
        assert comm.stats.messages == 3 * messages
        assert comm.stats.computed_bytes == 3 * native
        assert comm.stats.allreduces["native"].calls == 3
    # A sparse stream among dense ones is cut into the same parts.
    x = np.zeros(size, np.float32)
    x[: 3 if comm.rank == 0 else size] = 1
    y = comm.allreduce(sparcml.Stream.from_dense(x), algorithm="native").to_dense()
    assert y[2] == comm.size
    assert (y[3:] == comm.size - 1).all()
    odd = np.ones(5000, np.float32)
    if comm.rank == comm.size - 1:  # a NaN with a payload, in each part of the search
        odd.view(np.uint32)[[0, 1500, 4999]] = 0x7FC12345
    y = comm.allreduce(odd, algorithm="native")
    assert y.view(np.uint32)[[0, 1500, 4999]].tolist() == [0x7FC00000] * 3
    assert np.isnan(y).sum() == 3
    for other in (np.ones(5 + comm.rank), np.ones(5, ("f4", "f8")[comm.rank % 2])):
        with pytest.raises(
            MismatchError, match="all ranks must reduce vectors of the same"
        ):
            comm.allreduce(other, algorithm="native")
    assert comm.allreduce(np.ones(3), algorithm="native").tolist() == [comm.size] * 3


def python_calls(comm):
    """A step on two tensors makes few Python calls: between two messages there are none."""
    rng = np.random.default_rng(comm.rank)
    gradient = {
        name: rng.standard_normal((100, width), np.float32)
        for name, width in (("a", 1000), ("b", 500))
    }
    method = sparcml.Compressed(sparsify=sparcml.TopK(ratio=0.01))
    state = method.init(gradient)
    for _ in range(3):  # the first ones choose, agree and allocate
        _, state = method.aggregate(comm, gradient, state)
    calls: Counter[str] = Counter()
    waits = []

    def profile(frame, event, argument):
        del argument
        name = frame.f_code.co_qualname
        if name.startswith(("CompiledCollectives.waiting", "CompiledCollectives.end_wait")):
            waits.append(event)  # a rank that waits for another reads control messages
        elif event == "call" and (not waits or waits[-1] == "return"):
            calls[name] += 1

    sys.setprofile(profile)
    try:
        method.aggregate(comm, gradient, state)
    finally:
        sys.setprofile(None)
    assert 100 < calls.total() <= 400, calls.most_common(20)


def user_messages(comm):
    """The user's own messages on COMM_WORLD do not mix with ours."""
    from mpi4py import MPI  # its import starts MPI, which the tests must not do

    user = MPI.COMM_WORLD
    to, source = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    receiving = user.Irecv(received := np.zeros(3), source, MPI.ANY_TAG)
    user.Isend(np.full(3, comm.rank, float), to, 5)
    result = comm.allreduce(np.ones(7, np.float32))
    receiving.Wait()
    assert result.tolist() == [comm.size] * 7
    assert received.tolist() == [source] * 3


def groups(comm):
    other = comm.duplicate()
    group = comm.split(comm.rank % 2, key=-comm.rank)
    want = sum(r for r in range(comm.size) if r % 2 == comm.rank % 2)
    assert group.allreduce(np.array([comm.rank], np.float64))[0] == want
    assert group.allreduce(np.array([comm.rank], np.float64), algorithm="native")[0] == want
    assert other.allreduce(np.array([1], np.float32))[0] == comm.size
    group.close()
    other.close()


def mpi_names(comm):
    """mpi4py's operations and UNDEFINED are accepted."""
    from mpi4py import MPI

    x = np.array([comm.rank + 1.0])
    for op, name in (
        (MPI.SUM, "sum"),
        (MPI.MIN, "min"),
        (MPI.MAX, "max"),
        (MPI.PROD, "prod"),
    ):
        assert comm.allreduce(x, op) == comm.allreduce(x, name)
        assert comm.allreduce(comm.rank, op=op) == comm.allreduce(comm.rank, name)
        assert comm.reduce(x, 0, op) == comm.reduce(x, 0, name)
        assert comm.iallreduce(x, op).wait() == comm.allreduce(x, name)
        assert comm.explain(x, op).choice == comm.explain(x, name).choice
    np.testing.assert_array_equal(
        comm.reduce_scatter(x, MPI.MAX), comm.reduce_scatter(x, "max")
    )
    with pytest.raises(ValueError, match=r"op must be one of sum, .* got 'land'; use min"):
        comm.allreduce(x, MPI.LAND)
    assert comm.split(MPI.UNDEFINED) is None


def segments(comm):
    from sparcml.transport import mpi

    default, mpi.SEGMENT_BYTES = mpi.SEGMENT_BYTES, 1000
    try:
        for size in (0, 1, 999, 1000, 1001, 5000, 5001):
            message = np.arange(size).astype(np.uint8)
            to, source = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
            received = comm._transport.exchange(to, message, source)
            np.testing.assert_array_equal(received, message)
        long = np.arange(3000, dtype=np.float64)
        np.testing.assert_array_equal(comm.allreduce(long), comm.size * long)
    finally:
        mpi.SEGMENT_BYTES = default


def from_mpi(comm):
    from mpi4py import MPI

    del comm
    with sparcml.from_mpi(MPI.COMM_WORLD) as own:
        assert own.allreduce(np.array([1], np.float32))[0] == own.size


CHECKS = {
    "world": world,
    **law_checks(lambda algorithm: rosters.OPS),
    "nan_stays": nan_stays,
    "native_arrays": native_arrays,
    "python_calls": python_calls,
    "user_messages": user_messages,
    "groups": groups,
    "mpi_names": mpi_names,
    "segments": segments,
    "from_mpi": from_mpi,
    **waiting.CHECKS,
}

if __name__ == "__main__":
    with sparcml.world() as comm:
        run_checks(comm, CHECKS, Path(sys.argv[1]))
        sys.exit(0)
