"""The constants of D-PSGD's theorem for the network of `convergence`, at some of its models.

L is the largest eigenvalue of the Hessian, by power iteration on differences of gradients. sigma is
the root mean square distance of a node's gradient from the full one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .convergence import BATCH, HIDDEN, NODES, PER_NODE, SEED, SMALL, build, gradients
from .problem import CLASSES, PIXELS, Network, shards

Row = dict[str, Any]

AFTER = (0, 150)  # steps of centralized SGD
ITERATIONS, EPSILON, STRIDE = 40, 1e-2, 8


def measure(steps: int) -> list[Row]:
    """Return L and sigma after some steps, and the learning rate of the theorem there."""
    network, parts = Network((PIXELS, HIDDEN, CLASSES)), shards(NODES, PER_NODE)
    lr, total = SMALL
    X = np.tile(network.start(SEED), (NODES, 1))
    run = build("centralized")
    for step in range(1, steps + 1):
        G = gradients(network, parts, X, step, "centralized")
        X = run.step(X, G, lr * (1 - (step - 1) / total))
    rows = parts.rows.reshape(1, -1, PIXELS)[:, ::STRIDE]
    labels = parts.labels.reshape(1, -1)[:, ::STRIDE]

    def full(x: Any) -> Any:
        return network.gradients(x[None].astype(np.float32), rows, labels)[0].astype(
            np.float64
        )

    x = X[0].astype(np.float64)
    v = np.random.default_rng(SEED).standard_normal(x.size)
    largest = 0.0
    for _ in range(ITERATIONS):
        v /= np.linalg.norm(v)
        v = (full(x + EPSILON * v) - full(x - EPSILON * v)) / (2 * EPSILON)
        largest = float(np.linalg.norm(v))
    own = network.gradients(X, *parts.batch(steps + 1, BATCH, SEED)).astype(np.float64)
    sigma = math.sqrt(np.square(own - full(x)).sum(1).mean())
    rate = 1 / (2 * largest + sigma * math.sqrt(total / NODES))
    return [
        {"part": "constants", "after": steps, "L": largest, "sigma": sigma, "rate": rate}
    ]
