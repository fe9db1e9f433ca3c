"""The computed bytes of the engine's own allreduce are those that network interfaces count."""

import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from ..cli.ranks import RUN, needs_mpi4py, needs_mpiexec
from .machine import needs_emulation

PROGRAM = Path(__file__).with_name("native_bytes.py")
MPI = (needs_mpiexec, needs_mpi4py, pytest.mark.mpi)
TORCH = (
    pytest.mark.torch,
    pytest.mark.skipif(find_spec("torch") is None, reason="no torch"),
)
CASES = [  # engine, ranks, and the share of the vector that each rank sends
    pytest.param("mpi", 2, [1.0, 1.0], marks=MPI),
    pytest.param("mpi", 3, [1.0, 2.0, 1.0], marks=MPI),
    pytest.param("mpi", 4, [1.5] * 4, marks=MPI),
    pytest.param("torch", 3, [1.333] * 3, marks=TORCH),
]


@needs_emulation
@pytest.mark.parametrize(("engine", "ranks", "shares"), CASES)
def test_interfaces_count_what_is_computed(engine, ranks, shares, monkeypatch):
    monkeypatch.setenv("SPARCML_TIMEOUT", "100")
    options = ["-n", str(ranks), "--network", "1gbit", "--engine", engine]
    command = [*RUN, *options, str(PROGRAM)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == f"{shares}\n"
