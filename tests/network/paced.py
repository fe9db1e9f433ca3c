"""Allreduces over slow links, paced on all ranks but one: started by test_pacing.py.

The argument is what the last rank does in the last call: nothing, or die.
"""

import os
import signal
import sys
import threading

import numpy as np

import sparcml
from sparcml.transport import mpi

SIZE, CALLS = 600_000, 4
COUNTS = (400_000, 0, 20_000, 150_000)  # entries by rank: messages of any length, and none


def stream(rank: int) -> sparcml.Stream:
    rng = np.random.default_rng(rank)
    indices = np.sort(rng.choice(SIZE, COUNTS[rank], replace=False)).astype(np.uint32)
    values = rng.standard_normal(indices.size).astype(np.float32)
    return sparcml.Stream(SIZE, indices, values)


sizes: set[int] = set()
cut = mpi._segments


def segments(message, nbytes):
    sizes.add(nbytes)
    return cut(message, nbytes)


mpi._segments = segments

with sparcml.world() as comm:
    python = comm.rank == 0  # runs the definitions, and meets the others' segments
    if python:
        comm._session.use_python()
    x = stream(comm.rank)
    expected = np.zeros(SIZE)
    for rank in range(comm.size):
        expected += stream(rank).to_dense()
    for algorithm in ("ssar_split_allgather", "dsar_split_allgather"):
        found = set()
        for _ in range(CALLS):
            total = comm.allreduce(x, algorithm=algorithm).to_dense()
            found.add(total.tobytes())
        assert len(found) == 1
        np.testing.assert_allclose(total, expected, rtol=1e-4, atol=1e-5)
        every = comm.allgather(float(np.frombuffer(found.pop(), np.uint8).sum()))
        assert len(set(every)) == 1
    if python:
        print("segments of", sorted(sizes), flush=True)
    if sys.argv[1] == "die" and comm.rank == comm.size - 1:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGKILL)).start()
    if sys.argv[1] == "die":
        comm.allreduce(x, algorithm="ssar_split_allgather")
