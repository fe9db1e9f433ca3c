"""Rank 1 loses its link: started by test_cut_links.py on emulated links.

usage: cut.py cut | heal SECONDS | outage SECONDS | compute SECONDS
"""

import subprocess
import sys
import threading
import time

import numpy as np

import sparcml

CUT = 1  # the rank whose link is cut
X = sparcml.Stream(1000, np.arange(0, 1000, 50), np.ones(20, np.float32))


def set_link(state: str) -> None:
    subprocess.run(["ip", "link", "set", "eth0", state], check=True)


how, seconds = sys.argv[1], float((*sys.argv, "0")[2])
comm = sparcml.world()
for _ in range(100):
    comm.allreduce(X)
if how == "outage":  # while no rank makes a call; then messages pass, and rank 1 computes
    if comm.rank == CUT:
        set_link("down")
        threading.Timer(seconds, set_link, ["up"]).start()
    time.sleep(seconds + 3)
    for _ in range(5):
        comm.allreduce(X)
if comm.rank == CUT and how in ("compute", "outage"):
    time.sleep(seconds)
elif comm.rank == CUT:
    set_link("down")
    if how == "heal":
        threading.Timer(seconds, set_link, ["up"]).start()
start = time.monotonic()
try:
    for _ in range(100):
        result = comm.allreduce(X)
    outcome = f"finished {result.values.sum():.0f}"
except sparcml.TransportError as error:
    outcome = f"raised after {time.monotonic() - start:.1f} s: {error}"
print(f"rank {comm.rank} {outcome}", flush=True)
if how == "cut":
    time.sleep(10)  # so that all ranks report by themselves before the job ends
    sys.exit(1)
