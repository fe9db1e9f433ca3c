"""Nodes with different data: each has the images of one or two classes.

All nodes use the full gradient of their rows, so that what remains is the bias of a method. The
methods are those of the library, on simulated ranks.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

import sparcml
from sparcml import decentralized as dec

from .problem import PIXELS, Network, optimum, shards

if TYPE_CHECKING:
    from collections.abc import Callable

Row = dict[str, Any]

NODES, STEPS, RATE, DECAY, PER_NODE = 16, 250, 0.2, 0.01, 128
METHODS = ("allreduce", "D-PSGD", "D2", "gradient tracking", "RelaySum")
MARKS = sorted({round(t) for t in np.geomspace(5, STEPS, 24)})


def build(method: str) -> dec.Method | None:
    """Return a method of the library; None for an allreduce of gradients."""
    ring = dec.ring(NODES)
    methods: dict[str, Callable[[], dec.Method | None]] = {
        "allreduce": lambda: None,
        "D-PSGD": lambda: dec.DPSGD(ring),
        "D2": lambda: dec.D2(ring.lazy()),
        "gradient tracking": lambda: dec.GradientTracking(ring),
        "RelaySum": lambda: dec.RelaySum(binary_tree(NODES)),
    }
    return methods[method]()


def binary_tree(nodes: int) -> dec.Topology:
    """Return the tree in which node i > 0 is connected with (i - 1) // 2."""
    W = np.zeros((nodes, nodes))
    edges = [(i, (i - 1) // 2) for i in range(1, nodes)]
    degrees = np.bincount(np.array(edges).reshape(-1), minlength=nodes)
    for i, j in edges:
        W[i, j] = W[j, i] = 1 / (1 + max(degrees[i], degrees[j]))
    return dec.from_matrix(W + np.diag(1 - W.sum(1)))


def measure(method: str) -> list[Row]:
    """Return one run: the loss above the minimum of the mean model, and of single nodes'."""
    network, parts = Network(decay=DECAY), shards(NODES, PER_NODE, sorted_by_label=True)
    rows, labels = parts.rows.reshape(-1, PIXELS), parts.labels.reshape(-1)
    _, least = optimum(network, rows, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the smallest eigenvalue of a ring
        used = build(method)

    def body(comm: sparcml.Communicator) -> list[Any]:
        x, mine, found = network.start(0), slice(comm.rank, comm.rank + 1), []
        state = {} if used is None else used.init(x)
        for step in range(1, STEPS + 1):
            g = network.gradients(x[None], parts.rows[mine], parts.labels[mine])[0]
            if used is None:
                x = x - np.float32(RATE) * comm.allreduce(g, op="mean")
            else:
                x, state = used.step(comm, x, g, state, lr=RATE)
            if step in MARKS:
                found.append(x)
        return found

    models = np.array(sparcml.simulate(body, NODES, "gige", trace=0).results)
    mean = [network.loss(m, rows, labels) - least for m in models.mean(0)]
    local = [
        float(np.mean([network.loss(m, rows, labels) for m in models[:, t]])) - least
        for t in range(len(MARKS))
    ]
    classes = np.mean([len(set(each.tolist())) for each in parts.labels])
    row = {"part": "different data", "method": method, "nodes": NODES, "steps": STEPS}
    row |= {"lr": RATE, "marks": MARKS, "classes": float(classes), "least": least}
    return [row | {"mean": mean, "local": local}]
