"""Checks of waits, for engines of processes: law 12, and processes that ranks fork."""

import ctypes
import multiprocessing
import os
import sys
import time

import numpy as np
import pytest

import sparcml
from tests.rosters import LOSSLESS

BUSY_SECONDS = 1.5
X = np.ones(7, np.float32)


def hold_python(seconds):
    """Sleep like code in C that keeps Python's lock: no other thread runs meanwhile."""
    ctypes.PyDLL(None).usleep(int(seconds * 1e6))


def busy_rank(comm):
    """A rank that computes is waited for, and `wait(timeout)` raises on time."""
    if comm.size != 3:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARCML_TIMEOUT", "0.3")
        with sparcml.world() as other:
            for pause in (time.sleep, hold_python):
                if comm.rank == 0:
                    pause(BUSY_SECONDS)
                assert other.allreduce(X, algorithm="native")[0] == 3
            request = other.iallreduce(X)
            other.barrier()
            request.wait()
            if comm.rank == 0:
                hold_python(BUSY_SECONDS)
            request = other.iallreduce(X, algorithm=LOSSLESS[0])
            if comm.rank != 0:
                with pytest.raises(TimeoutError):
                    request.wait(timeout=0.2)
            assert request.wait()[0] == 3


def forked_children(comm):
    """Processes that a rank forks are not ranks, and their end is not the rank's."""
    if multiprocessing.parent_process() is not None:
        return  # started by multiprocessing: an exit would end in its code
    for status in (0, 3):
        if comm.rank == comm.size - 1:
            child = os.fork()
            if child == 0:
                with comm, pytest.raises(sparcml.TransportError, match="forked"):
                    comm.barrier()
                sys.exit(status)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == status
        comm.barrier()
    if comm.rank == comm.size - 1:
        process = multiprocessing.get_context("fork").Process(target=sys.exit, args=(4,))
        process.start()
        process.join()
        assert process.exitcode == 4
    comm.barrier()


CHECKS = {"busy_rank": busy_rank, "forked_children": forked_children}
