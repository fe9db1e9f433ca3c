"""`sparcml run --network`: ranks behind links, and nothing left behind, however it ends."""

import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from ..network.machine import (
    AS_CHIEF,
    AS_USER,
    MARK,
    assert_nobody,
    marked,
    needs_chief,
    needs_emulation,
    needs_user,
    our_links,
)
from .ranks import RUN, finish, needs_mpi4py, needs_mpiexec, start, wait_for_ranks

NETWORK = ("--network", "1gbit")
LAWS = Path(__file__).with_name("laws_on_links.py")
ENGINES = [
    pytest.param("mpi", marks=[needs_mpiexec, needs_mpi4py, pytest.mark.mpi]),
    pytest.param("torch", marks=pytest.mark.torch),
]
each_engine = pytest.mark.parametrize("engine", ENGINES)


@pytest.fixture
def mark(tmp_path, monkeypatch) -> str:
    """What all processes of the test have in their environment."""
    monkeypatch.setenv(MARK, str(tmp_path))
    return str(tmp_path)


@needs_emulation
@each_engine
def test_a_few_laws_hold(mark, engine, monkeypatch):
    if engine == "torch" and find_spec("torch") is None:
        pytest.skip("no torch here")
    monkeypatch.setenv("SPARCML_TIMEOUT", "100")  # three imports of torch take their time
    command = [*RUN, "-n", "3", *NETWORK, "--engine", engine, str(LAWS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == f"laws hold on 3 machines with {engine}\n"
    assert done.stderr == ""
    assert_nobody(mark)


# What the ranks do, what we do to `sparcml run`, its code, and its last word.
ENDS = {
    "success": ("", None, 0, ""),
    "failure": (
        "if rank == 1: sys.exit(3)\ntime.sleep(60)",
        None,
        3,
        "sparcml run: rank 1 exited with code 3\n",
    ),
    "death": (
        "if rank == 2: os.kill(os.getpid(), signal.SIGKILL)\ntime.sleep(60)",
        None,
        137,
        "sparcml run: rank 2 was killed by signal 9 (SIGKILL)\n",
    ),
    "interrupt": (
        "time.sleep(60)",
        signal.SIGINT,
        130,
        "sparcml run: stopped by SIGINT\n",
    ),
    "terminate": (
        "time.sleep(60)",
        signal.SIGTERM,
        143,
        "sparcml run: stopped by SIGTERM\n",
    ),
    "kill": ("time.sleep(60)", signal.SIGKILL, -9, ""),
}


@needs_emulation
@each_engine
@pytest.mark.parametrize("end", ENDS)
def test_nothing_is_left_behind(tmp_path, mark, engine, end):
    _check_end(tmp_path, mark, engine, end)


@needs_user
@needs_mpiexec
@needs_mpi4py
@pytest.mark.mpi
@pytest.mark.parametrize("end", ["failure", "interrupt", "kill"])
def test_nothing_is_left_behind_by_a_user(tmp_path, mark, end):
    _check_end(tmp_path, mark, "mpi", end, AS_USER)


def _check_end(tmp_path, mark, engine, end, before=()):
    body, number, code, word = ENDS[end]
    options = (*NETWORK, "--engine", engine)
    process = start(tmp_path, body, options=options, before=before)
    wait_for_ranks(tmp_path, 3)
    assert our_links() == []
    if number is not None:
        assert set(marked(mark)) > {process.pid, *wait_for_ranks(tmp_path, 3)}
        process.send_signal(number)
    assert finish(process) == (code, "", word)
    # Nobody is in the namespaces and nobody holds them open: they are gone.
    assert_nobody(mark)
    assert our_links() == []


@needs_user
@each_engine
def test_a_user_without_rights(tmp_path, mark, engine):
    script = Path(tmp_path, "script.py")
    script.write_text("import os, socket; print(os.getuid(), socket.gethostname())")
    command = [*AS_USER, *RUN, "-n", "2", *NETWORK, "--engine", engine, "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["1000 node0-1gbit", "1000 node1-1gbit"]
    assert_nobody(mark)


@needs_chief
def test_the_kernel_counts_no_namespace_left(tmp_path, mark):
    """Where a limit allows one cluster, another can follow, after any end of the first."""
    program = Path(__file__).with_name("one_at_a_time.py")
    command = [*AS_CHIEF, sys.executable, str(program)]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["finished", "failed", "interrupted", "killed"]
    assert_nobody(mark)


# Shell lines that take something away, and what is said then.
LACKS = {
    "ip": (
        "mount --bind /dev/null $(command -v ip)",
        "needs ip and tc, and ip is missing; install them with: apt-get install iproute2",
    ),
    "tc": (
        "mount --bind /dev/null $(command -v tc)",
        "needs ip and tc, and tc is missing; install them with: apt-get install iproute2",
    ),
    "network namespaces": (
        "echo 0 >/proc/sys/user/max_net_namespaces",
        "not permitted to create network namespaces (No space left on device); run as root",
    ),
}


@needs_chief
@pytest.mark.parametrize("lack", LACKS)
def test_what_is_missing_is_said(tmp_path, lack):
    line, message = LACKS[lack]
    Path(tmp_path, "script.py").write_text("open('started', 'w')")
    shell = ["sh", "-c", f'PATH="$PATH:/usr/sbin:/sbin"; {line} && exec "$@"', "sh"]
    command = [*AS_CHIEF, "--mount", *shell, *RUN, "-n", "2", "--engine", "torch"]
    done = subprocess.run(
        [*command, *NETWORK, "script.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.startswith("sparcml run: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not Path(tmp_path, "started").exists()


@needs_user
def test_a_user_without_namespaces_is_told(tmp_path):
    Path(tmp_path, "script.py").touch()
    limit = 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"'
    command = [*AS_CHIEF, "sh", "-c", limit, "sh", "setpriv", "--bounding-set=-all"]
    done = subprocess.run(
        [*command, *RUN, "--engine", "torch", *NETWORK, "script.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=os.environ | {"LC_ALL": "C"},
    )
    assert done.returncode == 1
    assert (
        "not permitted to create network namespaces (No space left on device)"
        in done.stderr
    )
    assert done.stderr.count("\n") == 1
