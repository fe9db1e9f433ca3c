"""Rank 1 sends wrong lengths of segments, as another version might: see test_failures.py.

usage: bad_lengths.py python | compiled LENGTH...
"""

import sys
from typing import Any

import numpy as np

import sparcml
from sparcml.transport.mpi import LENGTH, SEGMENT

with sparcml.world() as comm:
    if sys.argv[1] == "python":
        comm._session.use_python()
    comm.barrier()
    if comm.rank == 1:
        transport: Any = comm._session.transport
        transport.comm.Send(np.array(sys.argv[2:], np.int64), 0, LENGTH)
        transport.comm.Send(np.zeros(1 << 20, np.uint8), 0, SEGMENT)
    comm.allreduce(sparcml.Stream(100, [1], [1.0]), algorithm="ssar_split_allgather")
