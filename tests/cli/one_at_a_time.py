"""Clusters one after the other, where the kernel allows one: started by test_run_network.py."""

import signal
import subprocess
import sys
import time
from pathlib import Path

RANKS = 3
# One for the switch, one for the maker to start with, and one less than two clusters.
LIMIT = 2 * (RANKS + 1) - 1
RUN = [sys.executable, "-m", "sparcml", "run", "-n", str(RANKS), "--engine", "torch"]


def ready():
    """Whether the ranks run; the last kernel's work may be under way, so try again."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        process = subprocess.Popen(
            [*RUN, "--network", "1gbit", "script.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        if process.stdout.readline() == "here\n":
            return process
        assert "No space left" in process.communicate()[1]
        time.sleep(0.1)
    sys.exit("no place for another cluster")


def end(process, number=None):
    if number is not None:
        process.send_signal(number)
    process.communicate(timeout=20)
    return process.returncode


WAIT = "print('here', flush=True); import time; time.sleep({}); raise SystemExit({})"


def play(seconds, code):
    Path("script.py").write_text(WAIT.format(seconds, code))
    return ready()


Path("/proc/sys/user/max_net_namespaces").write_text(str(LIMIT))
assert end(play(0, 0)) == 0
print("finished")
assert end(play(0, 3)) == 3
print("failed")
assert end(play(60, 0), signal.SIGINT) == 130
print("interrupted")
assert end(play(60, 0), signal.SIGKILL) == -9
assert end(play(0, 0)) == 0
print("killed")
