"""Prints a digest of the weights of two solvers: started by tests/linear/test_processes.py."""

import hashlib
import sys
from pathlib import Path

import numpy as np

import sparcml
from sparcml.linear import SCD, SGD, InverseDecay, Penalty, Rows


def matrix():
    """The same rows on every rank."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((90, 50)) * (rng.random((90, 50)) < 0.1)
    return Rows.of(X, np.sign(rng.standard_normal(90)))


def digests(comm):
    rows = matrix().part(comm.rank, comm.size)
    sgd = SGD(
        penalty=Penalty(1e-3, 1e-2),
        learning_rate=InverseDecay(0.5),
        batch_size=16,
        epochs=3,
    )
    first = sgd.run(comm, rows).weights
    second = SCD(penalty=Penalty(1e-3), epochs=4, block_size=5).run(comm, rows)
    found = (first, second.weights(comm, rows.features))
    return [hashlib.sha256(weights.tobytes()).hexdigest() for weights in found]


if __name__ == "__main__":
    with sparcml.world() as world:
        mine = digests(world)
        Path(sys.argv[1], str(world.rank)).write_text(" ".join(mine))
