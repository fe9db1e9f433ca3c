"""`sparcml run` with real ranks: output, codes, and the name of the first to fail."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from .ranks import (
    RUN,
    assert_gone,
    each_engine,
    finish,
    needs_mpi4py,
    needs_mpiexec,
    start,
    wait_for_ranks,
)


@each_engine
def test_output_and_arguments_pass_through(tmp_path, engine):
    body = "print('to', rank, sys.argv[1:]); print('err', file=sys.stderr)\n"
    body += "assert os.environ['UCX_LOG_LEVEL'] == 'error', 'warnings of MPICH are shown'"
    code, out, err = finish(
        start(tmp_path, body, arguments=("-n", "--x=1"), options=engine)
    )
    assert code == 0
    assert sorted(out.splitlines()) == [f"to {r} ['-n', '--x=1']" for r in range(3)]
    assert err.splitlines() == ["err"] * 3


@needs_mpiexec
@pytest.mark.mpi
def test_a_module_runs_by_its_name(tmp_path):
    Path(tmp_path, "echo.py").write_text("import sys; print(__name__, sys.argv[1:])")
    command = [*RUN, "-n", "2", "-m", "echo", "-m"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["__main__ ['-m']"] * 2


@needs_mpiexec
@pytest.mark.mpi
def test_output_is_live(tmp_path):
    process = start(tmp_path, "print('now'); time.sleep(60)", ranks=1)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "now\n"
    finally:
        process.terminate()
        assert finish(process)[0] == 128 + signal.SIGTERM


@each_engine
def test_a_rank_that_leaves_by_os_exit_is_named(tmp_path, engine):
    body = "os._exit(0) if rank == 1 else (time.sleep(0.3), sys.exit(5))"
    code, _, err = finish(start(tmp_path, body, options=engine))
    assert code == 1
    assert err == "sparcml run: rank 1 called os._exit(0)\n"


@each_engine
def test_exit_code_is_passed_on_and_its_rank_named(tmp_path, engine):
    code, _, err = finish(
        start(tmp_path, "sys.exit(3 if rank == 1 else 0)", options=engine)
    )
    assert code == 3
    assert err == "sparcml run: rank 1 exited with code 3\n"


@each_engine
def test_a_rank_that_exits_inside_a_communicator_is_named(tmp_path, engine):
    body = """
import sparcml
with sparcml.world() as comm:
    comm.barrier()
    if comm.rank == 1:
        sys.exit(3)
    comm.barrier()
"""
    code, _, err = finish(start(tmp_path, body, options=engine))
    assert code == 3
    assert err.splitlines()[-1] == "sparcml run: rank 1 exited with code 3"


@each_engine
def test_killed_rank_is_named_though_others_fail_later(tmp_path, engine):
    body = """
if rank == 2:
    os.kill(os.getpid(), signal.SIGKILL)
if rank == 1:
    os.kill(os.getpid(), signal.SIGSTOP)
time.sleep(1)
sys.exit(5)
"""
    process = start(tmp_path, body, options=engine)
    pids = wait_for_ranks(tmp_path, 3)
    code, out, err = finish(process)
    assert_gone(pids)
    assert code == 128 + signal.SIGKILL
    assert err == "sparcml run: rank 2 was killed by signal 9 (SIGKILL)\n"
    assert not out


@needs_mpiexec
@needs_mpi4py
@pytest.mark.mpi
def test_exception_ends_ranks_that_wait_in_mpi(tmp_path):
    body = """
from mpi4py import MPI
if rank == 1:
    raise RuntimeError("no more data")
MPI.COMM_WORLD.allreduce(1)
"""
    begun = time.monotonic()
    process = start(tmp_path, body)
    pids = wait_for_ranks(tmp_path, 3)
    code, _, err = finish(process)
    assert_gone(pids)
    assert code == 1
    assert time.monotonic() - begun < 12
    assert err.endswith("sparcml run: rank 1 raised RuntimeError: no more data\n")
    assert "Traceback" in err
    assert "rank_process.py" not in err


@needs_mpiexec
@needs_mpi4py
@pytest.mark.mpi
def test_mpi_abort_is_named(tmp_path):
    body = """
from mpi4py import MPI
if rank == 1:
    MPI.COMM_WORLD.Abort(7)
time.sleep(60)
"""
    code, _, err = finish(start(tmp_path, body))
    assert code == 7
    # Hydra at times ends the job before it has passed MPI's own words on.
    named = err.endswith("sparcml run: rank 1 called MPI_Abort with code 7\n")
    assert named == ("Abort(7) on node 1" in err)
    assert named or err.endswith("no rank reported why; did one call MPI_Abort?\n")


@each_engine
def test_a_killed_supervisor_is_named(tmp_path, engine):
    process = start(tmp_path, "time.sleep(60)", options=engine)
    pids = wait_for_ranks(tmp_path, 3)
    supervisor = int(Path(tmp_path, "1.pid").read_text().split()[1])
    os.kill(supervisor, signal.SIGKILL)
    code, out, err = finish(process)
    assert_gone(pids)
    assert (code, out) == (137, "")
    assert err == "sparcml run: rank 1 was killed from outside\n"
