"""Compare computed bytes with those of the network interface: started by test_native_bytes.py."""

import sys
import time
from pathlib import Path

import numpy as np

import sparcml

CALLS = 5
TOLERANCE = 0.03  # headers of TCP and IP, acknowledgements, and the two barriers


def interface_bytes() -> int:
    """Return what the only interface beside the loopback has sent."""
    lines = Path("/proc/net/dev").read_text().splitlines()[2:]
    (counts,) = (c.split() for name, c in map(parts, lines) if name != "lo")
    return int(counts[8])


def parts(line: str) -> tuple[str, str]:
    name, _, counts = line.partition(":")
    return name.strip(), counts


def settled() -> int:
    """Return the bytes once nothing has been sent for a while."""
    before = -1
    while (now := interface_bytes()) != before:
        before = now
        time.sleep(0.3)
    return now


with sparcml.world() as comm:
    x = np.ones(1_000_000, np.float32)
    comm.allreduce(x, algorithm="native")  # opens connections
    comm.barrier()
    start = settled()
    comm.barrier()
    comm.stats.reset()
    for _ in range(CALLS):
        comm.allreduce(x, algorithm="native")
    computed = comm.stats.computed_bytes
    comm.barrier()
    sent = settled() - start
    comm.barrier()
    assert comm.stats.bytes >= computed > 0
    ratio = sent / computed
    assert 1 <= ratio < 1 + TOLERANCE, f"rank {comm.rank}: {sent} sent, {computed} computed"
    share = round(computed / CALLS / x.nbytes, 3)
    shares = comm.allgather(share)
    if comm.rank == 0:
        sys.stdout.write(f"{shares}\n")
