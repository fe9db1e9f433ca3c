"""The error after K steps on n nodes, with the learning rate c sqrt(n / K): about 1 / sqrt(n K).

The error is the mean over the steps of ||grad f||^2 at the mean model, as in the theorem of D-PSGD.
The loss is that of a linear model, with one row per node and step.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sparcml import decentralized as dec

from . import vectorized
from .convergence import gradients
from .problem import PIXELS, Network, shards

Row = dict[str, Any]

NODES, STEPS = (8, 32, 112), (128, 512, 2048, 8192)
FACTOR, DECAY, PER_NODE, SAMPLES = 1.0, 0.01, 128, 64


def measure(nodes: int, steps: int) -> list[Row]:
    """Return the error of centralized SGD and of D-PSGD on a ring."""
    network, parts = Network(decay=DECAY), shards(nodes, PER_NODE)
    every = parts.rows.reshape(1, -1, PIXELS), parts.labels.reshape(1, -1)
    lr = FACTOR * math.sqrt(nodes / steps)
    # Gradients fall fast at first, so that steps are sampled densely there.
    marks = sorted({0, *np.geomspace(1, steps - 1, SAMPLES).round().astype(int).tolist()})
    rows = []
    for method in ("centralized", "D-PSGD"):
        run: vectorized.VectorizedMethod = vectorized.Centralized()
        if method == "D-PSGD":
            run = vectorized.DPSGD(vectorized.Mixer(dec.ring(nodes)))
        X, squares = np.tile(network.start(0), (nodes, 1)), []
        for step in range(steps):
            if step in marks:
                slope = network.gradients(X.mean(0)[None], *every)
                squares.append(float(np.vdot(slope, slope)))
            X = run.step(X, gradients(network, parts, X, step, method, 1), lr)
        row = {"part": "rate", "method": method, "nodes": nodes, "steps": steps, "lr": lr}
        rows.append(row | {"error": float(np.trapezoid(squares, marks)) / (steps - 1)})
    return rows
