"""Sums arrays by `native` while some ranks are traced: started by test_laws.py."""

import hashlib
import sys

import numpy as np

import sparcml

with sparcml.world() as comm:
    comm.trace(sys.argv[1])
    if comm.rank == 0:
        comm.trace(None)
    for size in (1000, 600_000):  # one part and several
        x = np.random.default_rng(comm.rank).standard_normal(size, np.float32)
        x[7] = -np.nan if comm.rank else 1.0
        total = comm.allreduce(x, algorithm="native")
        found = comm.allgather(float(int(hashlib.sha256(total).hexdigest()[:12], 16)))
        assert len(set(found)) == 1, found
        assert total.view(np.uint32)[7] == np.float32(np.nan).view(np.uint32)
        every = np.stack(
            [s.to_dense() for s in comm.allgather(sparcml.Stream.from_dense(x))]
        )
        np.testing.assert_allclose(total, every.sum(0), rtol=1e-4, atol=1e-5)
    if comm.rank == 0:
        print("same bits")
