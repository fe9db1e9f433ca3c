"""Ranks that are killed or stopped: the others raise and name them, and nothing is left."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .ranks import each_engine, finish, needs_mpi4py, needs_mpiexec, start

ROOT = Path(__file__).parents[2]

# Rank 0 receives a message whose sender died while it was in flight.
IN_FLIGHT = """
import numpy as np, sparcml
transport = sparcml.world()._transport
if rank == 1:
    transport.isend(0, np.ones(1 << 21, np.uint8))
    time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGKILL)
if rank == 0:
    time.sleep(0.5)
    try:
        transport.receive(1)
    except sparcml.TransportError as error:
        print(error)
time.sleep(60)
"""


@needs_mpi4py
@each_engine
def test_a_message_of_a_dead_rank_raises_and_names_it(tmp_path, engine):
    code, out, err = finish(start(tmp_path, IN_FLIGHT, options=engine), timeout=60)
    assert out == "rank 1 is gone, and rank 0 still waits in start, receive from rank 1\n"
    assert err == "sparcml run: rank 1 was killed by signal 9 (SIGKILL)\n"
    assert code == 128 + signal.SIGKILL


@needs_mpi4py
@needs_mpiexec
@pytest.mark.mpi
@pytest.mark.torch
def test_kills_at_random_moments():
    """SIGKILL and SIGSTOP on both engines."""
    program = str(ROOT / "benchmarks" / "run_kills.py")
    done = subprocess.run(
        [sys.executable, program, "--trials", "4", "--jobs", "4"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
