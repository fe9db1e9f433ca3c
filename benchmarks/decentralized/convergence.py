"""Loss on a ring of 112 nodes, step by step: centralized, D-PSGD, and DCD with four bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparcml import QSGD
from sparcml import decentralized as dec

from . import vectorized
from .problem import CLASSES, PIXELS, Network, Shards, shards

Row = dict[str, Any]

NODES, BATCH, SEED = 112, 32, 1
HIDDEN, PER_NODE, LOCAL = 32, 500, 8
QUANTIZER = QSGD(bits=4, bucket=64)
METHODS = ("centralized", "D-PSGD", "DCD, 4 bits")
# Learning rate and steps. The theorem has the rate 1 / (2 L + sigma sqrt(K / n)); `constants` has
# its value.
SETTINGS = ((0.1, 1500), (0.3, 1500), (0.3, 4000))
SMALL, LONG = SETTINGS[0], SETTINGS[-1]


def measure(method: str, lr: float, steps: int) -> list[Row]:
    """Return one run: the loss of the mean model, and the mean loss of some nodes' models."""
    network = Network((PIXELS, HIDDEN, CLASSES))
    parts = shards(NODES, PER_NODE)
    rows, labels = parts.rows.reshape(-1, PIXELS)[::4], parts.labels.reshape(-1)[::4]
    run = build(method)
    X = np.tile(network.start(SEED), (NODES, 1))
    marks = sorted({round(t) for t in np.geomspace(10, steps, 30)})
    mean, local, distance = [], [], []
    for step in range(1, steps + 1):
        G = gradients(network, parts, X, step, method)
        X = run.step(X, G, lr * (1 - (step - 1) / steps))
        if step in marks:
            middle = X.mean(0)
            some = X[:: NODES // LOCAL]
            mean.append(network.loss(middle, rows, labels))
            local.append(float(np.mean([network.loss(x, rows, labels) for x in some])))
            square = np.square(X - middle, dtype=np.float64).sum(1).mean()
            distance.append(float(np.sqrt(square)))
    row = {"part": "convergence", "method": method, "nodes": NODES, "steps": steps}
    row |= {"batch": BATCH, "lr": lr, "parameters": network.size, "marks": marks}
    return [row | {"mean": mean, "local": local, "distance": distance}]


def build(method: str) -> vectorized.VectorizedMethod:
    """Return a method on the ring."""
    if method == "centralized":
        return vectorized.Centralized()
    if method == "D-PSGD":
        return vectorized.DPSGD(vectorized.Mixer(dec.ring(NODES)))
    return vectorized.DCD(dec.ring(NODES), QUANTIZER)


def gradients(
    network: Network, parts: Shards, X: Any, step: int, method: str, batch: int = BATCH
) -> Any:
    """Return the gradients of all nodes; equal models are evaluated once."""
    rows, labels = parts.batch(step, batch, SEED)
    if method != "centralized":
        return network.gradients(X, rows, labels)
    one = network.gradients(X[:1], rows.reshape(1, -1, PIXELS), labels.reshape(1, -1))
    return np.broadcast_to(one, X.shape)
