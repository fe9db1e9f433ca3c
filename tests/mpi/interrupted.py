"""Rank 1 gets a signal in a loop of short allreduces or in training: see test_failures.py."""

import os
import signal
import sys
import threading

import numpy as np

import sparcml
from sparcml.linear import SCD, SGD, Penalty, url_like


def sums(comm):
    x = sparcml.Stream(1000, np.arange(10, dtype=np.uint32), np.ones(10, np.float32))
    while True:
        comm.allreduce(x)


def sgd(comm):
    SGD(batch_size=50, epochs=10**6).run(comm, url_like(500, comm=comm))


def scd(comm):
    SCD(penalty=Penalty(l2=0.01), epochs=10**6, tol=-1.0).run(
        comm, url_like(100, comm=comm)
    )


with sparcml.world() as comm:
    if comm.rank == 1:
        interrupt = threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT))
        interrupt.start()
    try:
        {"sums": sums, "sgd": sgd, "scd": scd}[sys.argv[1]](comm)
    except KeyboardInterrupt:
        print("interrupted", comm._session.state.is_busy, flush=True)
        raise
