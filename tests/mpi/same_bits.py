"""Prints what each algorithm computes from values that round: started by test_laws.py."""

import hashlib
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

import sparcml
import tests  # noqa: F401  # registers the plug-ins among the examples
from sparcml.collectives import ALLREDUCES


def fingerprints(comm):
    rng = np.random.default_rng(comm.rank)
    indices = np.flatnonzero(rng.random(9000) < 0.2)
    x = sparcml.Stream(9000, indices, rng.standard_normal(len(indices)).astype(np.float32))
    found = []
    for algorithm in [name for name in ALLREDUCES if name != "native"]:
        total = comm.allreduce(x, algorithm=algorithm)
        bits = total.indices.tobytes() + total.values.tobytes()
        found.append(hashlib.sha256(bits).hexdigest())
    return found


if __name__ == "__main__":
    with sparcml.world() as world:
        lines = fingerprints(world)
        if world.rank == 0:
            print(*lines)
