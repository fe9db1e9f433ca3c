"""A launcher in Open MPI's manner: its options, its rank variable, its end."""

import os
import sys
import time
from pathlib import Path

import pytest

from sparcml.cli.launch.job import Job
from sparcml.cli.launch.launcher import Launcher, find_launcher
from sparcml.cli.launch.start import start

from .ranks import PROLOGUE, assert_gone, wait_for_ranks

# Takes `--oversubscribe -n N program...`; like many a launcher, it just waits.
OPEN_MPI = """#!/bin/sh
[ "$1" = --version ] && echo "mpirun (Open MPI) 5.0.3" && exit
[ "$1 $2" = "--oversubscribe -n" ] || exit 9
ranks=$3; shift 3; rank=0
while [ $rank -lt $ranks ]; do
    OMPI_COMM_WORLD_RANK=$rank "$@" &
    rank=$((rank + 1))
done
wait
"""


@pytest.fixture
def launcher(tmp_path, monkeypatch) -> Launcher:
    path = Path(tmp_path, "bin", "mpirun")
    path.parent.mkdir()
    path.write_text(OPEN_MPI)
    path.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(path.with_name("python")))
    found = find_launcher()
    monkeypatch.undo()
    monkeypatch.delenv("PMI_RANK", raising=False)
    monkeypatch.chdir(tmp_path)
    assert found is not None
    return found


def test_open_mpi_may_oversubscribe(launcher):
    assert launcher.command(2, ["x"])[1:] == ["--oversubscribe", "-n", "2", "x"]


def test_open_mpi_may_run_as_root(launcher, monkeypatch, capfd):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    names = [
        f"{p}_ALLOW_RUN_AS_ROOT{s}" for p in ("OMPI", "PRTE") for s in ("", "_CONFIRM")
    ]
    for name in names:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(names[0], "0")  # the user's own value stays
    Path("script.py").write_text(f"import os\nprint([os.environ[n] for n in {names}])")
    with Job(launcher, 1, ["script.py"]) as job:
        assert job.wait() == 0
    assert capfd.readouterr().out == "['0', '1', '1', '1']\n"
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert launcher.settings() == {"UCX_LOG_LEVEL": "error"}


def test_open_mpi_has_no_emulated_network(launcher, monkeypatch):
    """Its ranks look for it on a loopback that is not theirs."""
    monkeypatch.setattr(sys, "executable", str(Path(launcher.path).with_name("python")))
    with pytest.raises(
        OSError, match=r"run: Open MPI does not .* --engine torch, or MPICH"
    ):
        start("run", 2, ["script.py"], bandwidth=10**9)


def test_first_failure_is_named_and_the_rest_ended(launcher, tmp_path, capfd):
    body = "print('here')\nif rank == 1: sys.exit(3)\ntime.sleep(60)"
    Path("script.py").write_text(PROLOGUE + body)
    begun = time.monotonic()
    with Job(launcher, 3, ["script.py"]) as job:
        code = job.wait()
    assert_gone(wait_for_ranks(tmp_path, 3))
    assert (code, job.failure) == (3, "rank 1 exited with code 3")
    assert time.monotonic() - begun < 10
    assert capfd.readouterr().out == "here\n" * 3
