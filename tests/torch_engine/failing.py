"""Programs in which one rank goes wrong: run by test_failures.py."""

import os
import signal
import sys
import time
from typing import Any

import numpy as np

import sparcml
from sparcml.transport.gloo.frames import CAPACITY, FRAMES, HEADER, MARK, pack

X = sparcml.Stream(1000, np.arange(0, 1000, 50), np.ones(20, np.float32))


def misbehave(how, comm):
    """What the bad rank does between two calls; it may come back."""
    if how == "raises":
        raise ValueError("no such luck")
    if how == "exits":
        sys.exit(3)
    if how == "closes":
        comm.close()
        time.sleep(2)
        raise ValueError("closed")
    if how == "stalls":
        time.sleep(5)
    if how == "stops":
        os.kill(os.getpid(), signal.SIGSTOP)
    if how == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "diverges":
        comm.allgather(X)


def calls(comm, how, algorithm, bad):
    """Some allreduces, in the second of which one rank goes wrong."""
    comm.allreduce(X, algorithm=algorithm)
    if comm.rank == bad:
        misbehave(how, comm)
    other = how == "differs" and comm.rank == bad
    mine = sparcml.Stream(2000, [5], [1.0]) if other else X
    for _ in range(3):
        comm.allreduce(mine, algorithm=algorithm)


def body(how, algorithm, bad):
    """One rank's program, forked."""
    with sparcml.world(timeout=2.0 if how == "stalls" else None) as comm:
        calls(comm, how, algorithm, bad)


def announces_too_much():
    """Rank 1 announces a message that is longer than the memory."""
    with sparcml.world() as comm:
        comm.barrier()
        if comm.rank == 1:
            frame = pack(np.zeros(CAPACITY, np.uint8))
            HEADER.pack_into(frame.data, 0, 1 << 60, 0, MARK)
            transport: Any = comm._session.transport
            transport._mesh.send(0, frame, FRAMES).finish()
        comm.allreduce(X, algorithm="ssar_split_allgather")


def exits_well():
    """All ranks leave by sys.exit(0)."""
    with sparcml.world() as comm:
        comm.allreduce(X)
        sys.exit(0)


def large(bad):
    """One rank dies while long messages are on their way."""
    with sparcml.world() as comm:
        x = np.ones(8_000_000, np.float32)
        comm.allreduce(x, algorithm="dsar_split_allgather")
        if comm.rank == bad:
            signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
            signal.setitimer(signal.ITIMER_REAL, 0.03)
        while True:
            comm.allreduce(x, algorithm="dsar_split_allgather")


def missing():
    """One rank never comes."""
    if os.environ["RANK"] == "2":
        time.sleep(3)
        return
    with sparcml.world():
        pass


if __name__ == "__main__":  # under torchrun, where nobody closes anything
    calls(sparcml.world(), sys.argv[1], "ssar_recursive_double", 1)
    print("finished", flush=True)
