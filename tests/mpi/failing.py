"""A program in which one rank goes wrong: started by test_failures.py under mpiexec.

usage: failing.py HOW [with | caught]
"""

import os
import signal
import sys
import time

import numpy as np
from mpi4py import MPI

import sparcml

BAD = 2
X = sparcml.Stream(1000, np.arange(0, 1000, 50), np.ones(20, np.float32))


def misbehave(comm, how):
    if how == "raises":
        raise ValueError("no such luck")
    if how == "exits":
        sys.exit(3)
    if how == "closes":
        comm.close()
        time.sleep(60)
    if how == "stops":
        os.kill(os.getpid(), signal.SIGSTOP)
    if how == "dies":
        os.kill(os.getpid(), signal.SIGKILL)


def work(comm, how):
    x, algorithm = X, "ssar_recursive_double"
    comm.allreduce(x, algorithm=algorithm)
    if how == "closed_duplicate":
        comm.duplicate().close()
        how = "raises"
    if comm.rank == BAD:
        misbehave(comm, how)
        if how == "diverges":
            algorithm = "ssar_split_allgather"
        if how in ("differs", "differs_auto"):
            x = sparcml.Stream(2000, [5], [1.0])
    elif how == "raises_while_others_compute":
        time.sleep(60)
    if comm.rank == BAD and how == "raises_while_others_compute":
        raise ValueError("no such luck")
    if how == "differs_auto":
        algorithm = "auto"
    for _ in range(3):
        comm.allreduce(x, algorithm=algorithm)
    if how == "raises_after_closing":
        comm.close()
        if comm.rank == BAD:
            raise ValueError("no such luck")
        time.sleep(60)


os.write(1, f"pid {os.getpid()}\n".encode())  # one write: lines of ranks do not mix
how, *style = sys.argv[1:]
if how == "never_comes" and MPI.COMM_WORLD.rank == BAD:
    time.sleep(60)
if style == ["caught"]:
    try:
        work(sparcml.world(), how)
    except sparcml.TransportError:
        sys.exit(5)
elif style:
    with sparcml.world() as communicator:
        work(communicator, how)
else:
    work(sparcml.world(), how)
print("finished", flush=True)
