"""However `sparcml run` ends, its ranks end with it; mistakes start nothing."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .inside import called
from .ranks import (
    assert_gone,
    each_engine,
    finish,
    needs_mpiexec,
    start,
    wait_for_ranks,
)

# The helper's process id joins the ranks'.
STUBBORN = """
with open(f"{rank}.helper.tmp", "w") as file:
    print(subprocess.Popen(["sleep", "60"]).pid, file=file)
os.rename(f"{rank}.helper.tmp", f"{rank}.helper.pid")
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if rank == 1:
    os.kill(os.getpid(), signal.SIGSTOP)
time.sleep(60)
"""


def child_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


@each_engine
def test_interrupt_reaches_the_ranks(tmp_path, engine):
    body = """
try:
    print("ready")
    time.sleep(60)
finally:
    open(f"{rank}.clean", "w").close()
"""
    process = start(tmp_path, body, options=engine)
    pids = wait_for_ranks(tmp_path, 3)
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in pids[::2]] == ["ready\n"] * 3
    process.send_signal(signal.SIGINT)
    code, out, err = finish(process)
    assert_gone(pids)
    assert (code, out) == (130, "")
    assert err == "sparcml run: stopped by SIGINT\n"
    assert len(list(tmp_path.glob("*.clean"))) == 3


@each_engine
def test_terminate_ends_ranks_that_do_not_listen(tmp_path, engine):
    process = start(tmp_path, STUBBORN, options=engine)
    pids = wait_for_ranks(tmp_path, 3 + 3)
    process.terminate()
    code, _, err = finish(process)
    assert_gone(pids)
    assert code == 143
    assert err == "sparcml run: stopped by SIGTERM\n"


@needs_mpiexec
@pytest.mark.mpi
def test_second_interrupt_does_not_wait(tmp_path):
    body = "signal.signal(signal.SIGINT, signal.SIG_IGN); print(); time.sleep(60)"
    process = start(tmp_path, body, ranks=1)
    assert process.stdout is not None
    process.stdout.readline()
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert finish(process)[0] == 130
    assert time.monotonic() - begun < 2.5


@each_engine
@pytest.mark.parametrize("victim", ["run", "mpiexec", "proxy"])
def test_nobody_survives_a_killed_launcher(tmp_path, engine, victim):
    process = start(tmp_path, STUBBORN, options=engine)
    pids = wait_for_ranks(tmp_path, 3 + 3)
    chain = [process.pid]
    while chain[-1] not in pids:
        chain.append(child_of(chain[-1]))
    os.kill(chain[{"run": 0, "mpiexec": 1, "proxy": -2}[victim]], signal.SIGKILL)
    code, _, _ = finish(process)
    assert code != 0
    assert_gone(pids + chain, within=5)


@each_engine
def test_a_reader_that_leaves_ends_the_job_without_a_word(tmp_path, engine):
    process = start(tmp_path, "while True: print('line')", options=engine)
    assert process.stdout is not None
    assert process.stdout.readline() == "line\n"
    pids = wait_for_ranks(tmp_path, 3)
    process.stdout.close()  # as `head -1` does
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait(40) == 1
    assert_gone(pids)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-n", "0", "script.py"], "ranks must be at least 1, got 0"),
        (["-n", "2", "absent.py"], "no script at 'absent.py'"),
        (["-n", "2", "-m", "absent"], "no module named 'absent'"),
        (["-n", "2"], "Missing argument"),
        (["-n", "two", "script.py"], "'-n'"),
        (["--no-such", "script.py"], "--no-such"),
        (["--engine", "smoke", "script.py"], "'smoke' is not one of 'mpi', 'torch'"),
        (["--network", "fast", "script.py"], "got 'fast'"),
        (["--network", "0gbit", "script.py"], "bandwidth must be from"),
    ],
)
def test_bad_arguments_start_nothing(tmp_path, arguments, message, monkeypatch, capfd):
    Path(tmp_path, "script.py").write_text("open('started', 'w')")
    monkeypatch.chdir(tmp_path)
    code, _, err = called(monkeypatch, capfd, "run", *arguments)
    assert code == 2
    assert err.startswith("sparcml run: ")
    assert message in err
    assert err.count("\n") == 1
    assert not Path(tmp_path, "started").exists()


def test_no_launcher_names_the_remedy(tmp_path):
    Path(tmp_path, "script.py").touch()
    lonely = Path(tmp_path, "python")
    lonely.symlink_to(sys.executable)
    code = f"import sys; sys.executable = {str(lonely)!r}; sys.argv[0] = 'sparcml'; "
    code += "from sparcml.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "run", "-n", "2", "script.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PATH": str(tmp_path)},
    )
    assert done.returncode == 1
    assert "pip install '.[mpich]' in the clone" in done.stderr
    assert done.stderr.count("\n") == 1
