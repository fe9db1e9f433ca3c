"""Laws of the calls besides allreduce of vectors, as bodies that run on any engine.

Every rank computes the inputs of all ranks, and so the expected result.
"""

from __future__ import annotations

import math
import operator
from functools import reduce
from typing import Any

import numpy as np
import pytest

from sparcml import Stream
from sparcml.collectives import ALLREDUCES

from . import laws
from .neighbor_laws import NEIGHBORS
from .vector_laws import alltoall, integers

FLOATS = (0.1, -0.0, 1 / 3, 1e16, -2.5, -1e16, 7.0, 5e-324)
INTEGERS = (2**62, -1, 2**63 - 1, -(2**63), 0, 3, 2**40, -7)


def numbers(comm):
    """A number is reduced to a number, the same on all ranks, and integers are exact."""
    ops: dict[str, Any] = {
        "sum": operator.add,
        "min": min,
        "max": max,
        "prod": operator.mul,
    }
    for inputs in (INTEGERS, FLOATS, (True, False) * 4, (1, 0.5, True, 2, -0.25) * 2):
        mine, every = inputs[comm.rank], inputs[: comm.size]
        for op, python in ops.items():
            result = comm.allreduce(mine, op)
            want = reduce(python, every)
            assert result == want
            mixed = any(isinstance(number, float) for number in every)
            assert type(result) is (float if mixed else type(want)) or comm.size == 1
            assert comm.reduce(mine, 0, op) == (result if comm.rank == 0 else None)
        assert comm.allreduce(mine, "mean") == comm.allreduce(mine) / comm.size
        gathered = comm.allgather(mine)
        assert gathered == list(every)
        assert list(map(type, gathered)) == list(map(type, every))
        root = comm.size // 2
        for other in (None, 0):
            received = comm.broadcast(mine if comm.rank == root else other, root)
            assert received == every[root]
            assert type(received) is type(every[root])
    assert math.isnan(
        comm.allreduce(math.nan if comm.rank == comm.size - 1 else 1.0, "max")
    )
    assert math.copysign(1, comm.allreduce(-0.0)) == -1
    assert comm.allreduce(np.float32(0.5)) == 0.5 * comm.size
    assert comm.allreduce(np.int64(2), "max") == 2
    assert comm.allreduce(np.bool_(True), "min") is True


def numbers_refused(comm):
    """What numbers cannot do is refused before anything is sent."""
    for call, error, why in (
        (
            lambda: comm.allreduce(2**63),
            OverflowError,
            "allreduce: integers must be within",
        ),
        (
            lambda: comm.allgather(-(2**63) - 1),
            OverflowError,
            "allgather: integers must be",
        ),
        (lambda: comm.allreduce(np.longdouble(1)), TypeError, "got longdouble"),
        (lambda: comm.allreduce(1j), TypeError, "got complex"),
        (lambda: comm.reduce_scatter(1), TypeError, "got int"),
        (
            lambda: comm.allreduce(1, algorithm="ring"),
            ValueError,
            "algorithm requires a vec",
        ),
        (
            lambda: comm.allreduce(1, return_seen=True),
            ValueError,
            "return_seen requires a v",
        ),
        (lambda: comm.allreduce(1, out=np.zeros(1)), ValueError, "out requires a vector"),
        (
            lambda: comm.reduce(1, out=np.zeros(1)),
            ValueError,
            "reduce: out requires a vector",
        ),
        (
            lambda: comm.allgather(1, out=np.zeros(9)),
            ValueError,
            "allgather: out requires a",
        ),
    ):
        with pytest.raises(error, match=why):
            call()
    assert comm.allreduce(1) == comm.size


def outputs(comm):
    """Every collective writes its result to `out` and returns it, blocking or not."""
    P, me = comm.size, comm.rank
    inputs = [np.arange(10.0).reshape(2, 5) * (rank + 1) for rank in range(P)]
    sparse = [laws.sparse(np.random.default_rng(r), 40, 3, np.float64) for r in range(P)]
    for vectors in (inputs, sparse):
        mine = vectors[me]
        dense = [laws.filled(x, 0.0) if isinstance(x, Stream) else x for x in vectors]
        total = np.sum(dense, axis=0)
        flat, cut = total.reshape(-1), [total.size * r // P for r in range(P + 1)]
        for call, other, want in (
            (comm.allreduce, comm.iallreduce, total),
            (comm.reduce, comm.ireduce, total if me == 0 else None),
            (comm.reduce_scatter, comm.ireduce_scatter, flat[cut[me] : cut[me + 1]]),
            (comm.allgather, comm.iallgather, np.stack(dense)),
            (comm.broadcast, comm.ibroadcast, dense[0]),
        ):
            out = np.empty_like(total if want is None else want)
            for is_blocking in (True, False):
                out[...] = 99.0
                result = call(mine, out=out) if is_blocking else other(mine, out=out).wait()
                assert result is (None if want is None else out)
                np.testing.assert_array_equal(out, 99.0 if want is None else want)
    own = inputs[me].copy()
    assert comm.allreduce(own, out=own) is own
    out = np.zeros((2, 5))
    assert comm.broadcast(inputs[0] if me == 0 else None, out=out) is out
    np.testing.assert_array_equal(out, inputs[0])
    sizes = comm.allgather(np.full(me, me, np.float64), out=np.zeros(P * (P - 1) // 2))
    np.testing.assert_array_equal(sizes, np.repeat(np.arange(P), np.arange(P)))


def outputs_refused(comm):
    """An `out` of another type, size or dtype is refused before anything is sent."""
    x = np.ones(2 * comm.size)
    for call, out, error, why in (
        (comm.allreduce, [0.0], TypeError, "allreduce: out must be a NumPy array"),
        (
            comm.allreduce,
            x[1:].copy(),
            ValueError,
            f"allreduce: out must have {x.size} val",
        ),
        (
            comm.reduce_scatter,
            x.astype("f4")[:2],
            ValueError,
            "reduce_scatter: out must have 2",
        ),
        (
            comm.allgather,
            x.astype("f4"),
            ValueError,
            "allgather: out must have .* of float64",
        ),
        (
            comm.broadcast,
            x.astype("f4"),
            ValueError,
            "broadcast: out must have .* of float64",
        ),
        (
            comm.allreduce,
            np.ones(2 * x.size)[::2],
            ValueError,
            "allreduce: out must be contig",
        ),
    ):
        with pytest.raises(error, match=why):
            call(x, out=out)
    if comm.rank == 0:
        with pytest.raises(ValueError, match="reduce: out must have"):
            comm.reduce(x, out=x[1:])
    comm.barrier()


def requests(comm):
    """The non-blocking forms give the results of the blocking ones, in any order of waits."""
    P, me = comm.size, comm.rank
    x = laws.sparse(np.random.default_rng(me), 300, 20)
    root = P - 1
    calls = [
        (comm.iallreduce(x), comm.allreduce(x)),
        (comm.ireduce(x, root, "max"), comm.reduce(x, root, "max")),
        (comm.ireduce_scatter(x, "prod"), comm.reduce_scatter(x, "prod")),
        (comm.iallgather(x), comm.allgather(x)),
        (comm.ibroadcast(x if me == root else None, root), comm.broadcast(x, root)),
        (comm.iallreduce(me), sum(range(P))),
        (comm.ireduce(0.5, root), 0.5 * P if me == root else None),
        (comm.iallgather(me), list(range(P))),
        (comm.ibroadcast(True if me == 0 else None), True),
    ]
    for request, want in reversed(calls):
        got = request.wait()
        pairs = zip(got, want, strict=True) if isinstance(want, list) else [(got, want)]
        for a, b in pairs:
            if isinstance(b, Stream):
                np.testing.assert_array_equal(laws.fingerprint(a), laws.fingerprint(b))
            else:
                assert a == b
    with pytest.raises(ValueError, match=r"ireduce: root must be in"):
        comm.ireduce(x, P)
    with pytest.raises(ValueError, match=r"ibroadcast: root must be in"):
        comm.ibroadcast(x, -1)


def groups(comm):
    """A rank without a color joins no group; later splits and duplicates are not disturbed."""
    P, me = comm.size, comm.rank
    outside = 0 if P > 1 else 1
    group = comm.split(None if me == outside else 5, key=-me)
    if me == outside:
        assert group is None
    else:
        members = [rank for rank in reversed(range(P)) if rank != outside]
        assert (group.rank, group.size) == (members.index(me), len(members))
        assert group.allgather(me) == members
        group.close()
    with comm.split(me % 2) as halves, comm.duplicate() as all_ranks:
        assert halves.allgather(me) == list(range(me % 2, P, 2))
        assert all_ranks.allgather(me) == list(range(P))
    assert comm.split(None) is None


def special_values(comm):
    """Engines reduce NaN, infinities and signed zeros as we do, without warnings."""
    P, me = comm.size, comm.rank
    first, last = me == 0, me == P - 1
    dense = [name for name, a in ALLREDUCES.items() if a.is_dense]
    for dtype in (np.float32, np.float64):
        x = np.array([np.nan, -0.0, 0.0, np.inf, -np.nan, me, -me, -np.inf], dtype)
        x[0] = np.nan if last else 1.0
        x[1] = 0.0 if first else -0.0
        x[4] = -np.nan if first else -np.inf
        for op in ("min", "max"):
            wanted = comm.allreduce(x, op, "ring").tobytes()
            assert comm.allreduce(x, op, "native").tobytes() == wanted
        with np.errstate(over="raise"):
            each = dtype(0.9 * np.finfo(dtype).max / P)
            large = comm.allreduce(np.full(9, each), "sum", "native")
        assert np.isfinite(large).all()
        zeros = np.full(5, -0.0, dtype)
        for algorithm in dense:
            assert np.signbit(comm.allreduce(zeros, algorithm=algorithm)).all()
    root = np.int64(P - 1)
    assert comm.broadcast(x[5:7] if last else None, root).tolist() == [P - 1, 1 - P]
    assert (comm.reduce(x, root) is not None) == last


CALLS = (
    special_values,
    numbers,
    numbers_refused,
    outputs,
    outputs_refused,
    requests,
    alltoall,
    groups,
    integers,
    *NEIGHBORS,
)
