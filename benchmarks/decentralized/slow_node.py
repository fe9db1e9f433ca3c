"""Steps per second of all nodes if one of them computes five times slower."""

from __future__ import annotations

from typing import Any

import numpy as np

import sparcml
from sparcml import decentralized as dec

from .problem import PIXELS, Network, shards

Row = dict[str, Any]

NODES, SLOW, FACTOR, COMPUTE, SECONDS = 16, 5, 5.0, 10e-3, 1.2
NETWORK, RATE, DECAY, PER_NODE, BATCH = "gige", 0.5, 0.01, 128, 32
METHODS = ("allreduce", "D-PSGD", "AD-PSGD")


def measure(method: str, slow: bool) -> list[Row]:
    """Return the steps per second of all nodes, and the loss of the mean model at the end."""
    network, parts = Network(decay=DECAY), shards(NODES, PER_NODE)
    ring = dec.ring(NODES)
    used = {"allreduce": None, "D-PSGD": dec.DPSGD(ring), "AD-PSGD": dec.ADPSGD(ring)}[
        method
    ]
    # Synchronous nodes make the same number of steps, which the slow one determines.
    steps = int(SECONDS / COMPUTE / (FACTOR if slow else 1))

    def body(comm: sparcml.Communicator) -> tuple[int, float, Any]:
        x, mine, done = network.start(0), slice(comm.rank, comm.rank + 1), 0
        state = {} if used is None else used.init(x)
        while comm.now() < SECONDS if method == "AD-PSGD" else done < steps:
            rows, labels = parts.batch(done, BATCH, 1)
            comm.advance(COMPUTE)
            g = network.gradients(x[None], rows[mine], labels[mine])[0]
            if used is None:
                x = x - np.float32(RATE) * comm.allreduce(g, op="mean")
            else:
                x, state = used.step(comm, x, g, state, lr=RATE)
            done += 1
        end = comm.now()
        if used is not None:
            x, state = used.flush(comm, x, state)
        return done, end, x

    speed = {SLOW: 1 / FACTOR} if slow else 1.0
    found = sparcml.simulate(body, NODES, NETWORK, speed=speed, trace=0).results
    rates = [done / end for done, end, _ in found]
    models = np.array([x for _, _, x in found])
    mean = np.asarray(models.mean(0, np.float64), np.float32)
    loss = network.loss(mean, parts.rows.reshape(-1, PIXELS), parts.labels.reshape(-1))
    fast = [r for rank, r in enumerate(rates) if rank != SLOW]
    row = {"part": "slow node", "method": method, "slow": slow, "nodes": NODES}
    row |= {
        "fast_min": min(fast),
        "fast_mean": float(np.mean(fast)),
        "slow_rate": rates[SLOW],
    }
    return [row | {"seconds": SECONDS, "loss": loss}]
