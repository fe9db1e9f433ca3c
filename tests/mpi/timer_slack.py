"""Prints whether a long wait leaves the slack of timers as it was: see test_failures.py."""

import time
from pathlib import Path

import sparcml

SLACK = Path("/proc/self/timerslack_ns")

with sparcml.world() as comm:
    before = SLACK.read_text()
    if comm.rank == 1:
        time.sleep(0.2)
    comm.allreduce(sparcml.Stream(100, [1], [1.0]), algorithm="ssar_recursive_double")
    if comm.rank == 0:
        print(before == SLACK.read_text(), flush=True)
