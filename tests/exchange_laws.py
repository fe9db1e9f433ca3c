"""The laws of neighbor_exchange, and bad arguments, as bodies that run on any engine."""

from __future__ import annotations

import numpy as np
import pytest

from sparcml import QSGD, Half
from sparcml import decentralized as dec

from . import laws


def neighbor_exchanges(comm):
    """Every rank gets what the others sent it, quantized as the sender sees it."""
    P, me = comm.size, comm.rank
    sends = [r for r in range(P) if r != me and (r - me) % P in (1, 2, 4)]
    receives = [r for r in range(P) if r != me and (me - r) % P in (1, 2, 4)]

    def vector(source, target=0):
        return laws.sparse(np.random.default_rng([source, target]), 900, 30 + source)

    for got in (
        comm.neighbor_exchange(vector(me), sends, receives),
        comm.ineighbor_exchange(vector(me), sends, receives).wait(),
    ):
        assert list(got) == receives
        for source, stream in got.items():
            want = laws.fingerprint(vector(source))
            np.testing.assert_array_equal(laws.fingerprint(stream), want)
    each = {r: vector(me, r).to_dense().reshape(30, 30) for r in sends}
    for got in (
        comm.neighbor_exchange(each, sends, receives),
        comm.ineighbor_exchange(each, sends, receives).wait(),
    ):
        for source, array in got.items():
            np.testing.assert_array_equal(array.ravel(), vector(source, me).to_dense())
    assert comm.neighbor_exchange(0.5 * me, sends, receives) == {
        r: 0.5 * r for r in receives
    }
    x = np.random.default_rng(me).standard_normal(400).astype(np.float32)
    for quantize in (None, QSGD(4)):
        parts, seen = comm.neighbor_exchange(x, sends, receives, quantize, return_seen=True)
        everyone = comm.allgather(seen)
        for source in receives:
            np.testing.assert_array_equal(parts[source], everyone[source])
        assert not np.shares_memory(seen, x)
        each = {r: x + r for r in sends}
        parts, seen = comm.ineighbor_exchange(
            each, sends, receives, quantize, return_seen=True
        ).wait()
        assert list(seen) == sends
        back = comm.neighbor_exchange(seen, sends, receives)
        for source in receives:
            np.testing.assert_array_equal(parts[source], back[source])
    assert comm.neighbor_exchange(x, [], []) == {}
    comm.barrier()


def neighbor_refused(comm):
    """Bad arguments are refused before anything is sent."""
    P, me = comm.size, comm.rank
    x, ring = np.ones(8, np.float32), dec.ring(P)
    for call, error, why in (
        (
            lambda: comm.neighbor_allreduce(x, dec.ring(P + 1)),
            ValueError,
            rf"topology must be for {P} ranks, got ring\({P + 1}\) for {P + 1}; construct",
        ),
        (
            lambda: comm.ineighbor_allreduce(x, "ring"),
            TypeError,
            "ineighbor_allreduce: topology must be one of .* got str",
        ),
        (lambda: comm.neighbor_allreduce(x, ring, -1), ValueError, "step must be >= 0"),
        (lambda: comm.neighbor_allreduce(x, ring, 0.5), TypeError, "step must be an integ"),
        (
            lambda: comm.neighbor_allreduce(np.arange(8), ring),
            TypeError,
            r"x must have float values, got int64; convert it with \.astype",
        ),
        (
            lambda: comm.neighbor_allreduce(1.0, ring),
            TypeError,
            "x must be a Stream.* float",
        ),
        (lambda: comm.neighbor_allreduce(x, ring, 0, 8), TypeError, "must be a quantizer"),
        (
            lambda: comm.neighbor_exchange(x, [me], []),
            ValueError,
            rf"sends must be ranks in \[0, {P}\) other than {me}, got {me}",
        ),
        (lambda: comm.ineighbor_exchange(x, [], [P]), ValueError, f"receives .* got {P}"),
        (lambda: comm.neighbor_exchange({}, [], [-1]), ValueError, "receives .* got -1"),
        (
            lambda: comm.neighbor_exchange({99: x}, [], []),
            ValueError,
            r"one vector for each rank of sends, \[\], got those of \[99\]",
        ),
        (
            lambda: comm.neighbor_exchange(np.arange(8), [], [], Half()),
            TypeError,
            "requires float values, got int64",
        ),
    ):
        with pytest.raises(error, match=why):
            call()
    comm.barrier()


EXCHANGES = (neighbor_exchanges, neighbor_refused)
