"""A program to be traced: started by test_trace.py under mpiexec."""

import json
import os
import sys

import numpy as np

import sparcml


def main(how: str) -> None:
    comm = sparcml.world()
    x = sparcml.Stream(1000, np.arange(0, 1000, 50), np.ones(20, np.float32))
    request = comm.iallreduce(x)
    comm.allreduce(x, algorithm="ssar_split_allgather")
    request.wait()
    if how == "raises" and comm.rank == 1:
        raise ValueError("no such luck")
    comm.allreduce(x, algorithm="ssar_recursive_double")
    # One write: lines of ranks do not mix.
    os.write(1, (json.dumps([comm.rank, comm.stats.bytes]) + "\n").encode())


main(sys.argv[1])
