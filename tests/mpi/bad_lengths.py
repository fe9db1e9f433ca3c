"""Rank 1 sends wrong lengths of segments, as another version might: see test_failures.py."""

import sys
from typing import Any

import numpy as np

import sparcml
from sparcml.transport.mpi import LENGTH

with sparcml.world() as comm:
    if sys.argv[1] == "python":
        comm._session.use_python()
    comm.barrier()
    if comm.rank == 1:
        lengths = np.array([5_000_000, 0][: int(sys.argv[2])], np.int64)
        transport: Any = comm._session.transport
        transport.comm.Send(lengths, 0, LENGTH)
    comm.allreduce(sparcml.Stream(100, [1], [1.0]), algorithm="ssar_split_allgather")
