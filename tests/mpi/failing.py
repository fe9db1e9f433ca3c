"""A program in which one rank goes wrong: started by test_failures.py under mpiexec."""

import os
import signal
import sys

import numpy as np

import sparcml

BAD = 2


def main(how: str) -> None:
    comm = sparcml.world()
    os.write(1, f"pid {os.getpid()}\n".encode())  # one write: lines of ranks do not mix
    x = sparcml.Stream(1000, np.arange(0, 1000, 50), np.ones(20, np.float32))
    comm.allreduce(x, algorithm="ssar_recursive_double")
    algorithm = "ssar_recursive_double"
    if comm.rank == BAD:
        if how == "raises":
            raise ValueError("no such luck")
        if how == "exits":
            sys.exit(3)
        if how == "stops":
            os.kill(os.getpid(), signal.SIGSTOP)
        if how == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "diverges":
            algorithm = "ssar_split_allgather"
        if how in ("differs", "differs_auto"):
            x = sparcml.Stream(2000, [5], [1.0])
    if how == "differs_auto":
        algorithm = "auto"
    for _ in range(3):
        comm.allreduce(x, algorithm=algorithm)
    print("finished", flush=True)


main(sys.argv[1])
