"""The same bits, spent on models or on differences: naive, DCD, ECD and Choco on 112 nodes.

The loss is that of a linear model with weight decay, whose minimum is known, so that what remains
of a method's loss is its error.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

import sparcml
from sparcml import QSGD
from sparcml import decentralized as dec

from . import vectorized
from .problem import PIXELS, Network, Shards, optimum, shards

if TYPE_CHECKING:
    from collections.abc import Callable

Row = dict[str, Any]

NODES, STEPS, BATCH, RATE, SEED = 112, 700, 32, 1.0, 1
DECAY, PER_NODE, LOCAL, BUCKET = 0.01, 500, 4, 64
FEW = 128  # images per node of a second run, in which nodes have less similar data
METHODS = ("naive", "DCD", "ECD", "Choco")
BITS = (4, 8)
MARKS = sorted({round(t) for t in np.linspace(20, STEPS, 18)})
CHECKED, CHECKED_STEPS = 16, 20
COUNTED = (8, 16, 112)


@cache
def _problem(per_node: int) -> tuple[Network, Shards, float]:
    network, parts = Network(decay=DECAY), shards(NODES, per_node)
    _, least = optimum(network, parts.rows.reshape(-1, PIXELS), parts.labels.reshape(-1))
    return network, parts, least


def build(method: str, bits: int, nodes: int) -> vectorized.VectorizedMethod:
    """Return a method on a ring of all nodes at once; without bits nothing is compressed."""
    ring = dec.ring(nodes)
    if not bits:
        exact = vectorized.DPSGD(vectorized.Mixer(ring))
        return exact if method == "D-PSGD" else vectorized.Centralized()
    types: dict[str, Callable[..., vectorized.VectorizedMethod]] = {
        "naive": vectorized.NaiveQuantized,
        "DCD": vectorized.DCD,
        "ECD": vectorized.ECD,
        "Choco": vectorized.Choco,
    }
    return types[method](ring, QSGD(bits=bits, bucket=BUCKET))


def real(method: str, bits: int, nodes: int) -> dec.Method:
    """Return the method of the library."""
    ring, quantizer = dec.ring(nodes), QSGD(bits=bits or 8, bucket=BUCKET)
    methods: dict[str, Callable[[], dec.Method]] = {
        "D-PSGD": lambda: dec.DPSGD(ring),
        "naive": lambda: dec.NaiveQuantized(ring, quantizer),
        "DCD": lambda: dec.DCD(ring, quantizer),
        "ECD": lambda: dec.ECD(ring, quantizer),
        "Choco": lambda: dec.Choco(ring, quantizer, gamma=1.0),
    }
    return methods[method]()


def rate(step: int) -> float:
    """Return the learning rate, which falls to zero."""
    return RATE * (1 - step / STEPS) ** 2


def measure(method: str, bits: int, per_node: int = PER_NODE) -> list[Row]:
    """Return one run: the loss above the minimum of the mean model, and of single nodes'."""
    network, parts, least = _problem(per_node)
    rows, labels = parts.rows.reshape(-1, PIXELS), parts.labels.reshape(-1)
    run = build(method, bits, NODES)
    X = np.tile(network.start(0), (NODES, 1))
    mean, local = [], []
    for step in range(1, STEPS + 1):
        G = network.gradients(X, *parts.batch(step, BATCH, SEED))
        X = run.step(X, G, rate(step - 1))
        if step in MARKS:
            some = X[:: NODES // LOCAL]
            mean.append(network.loss(X.mean(0), rows, labels) - least)
            losses = [network.loss(x, rows, labels) for x in some]
            local.append(float(np.mean(losses)) - least)
    part = "compressed" if per_node == PER_NODE else "few images"
    row = {"part": part, "method": method, "bits": bits, "nodes": NODES}
    row |= {
        "steps": STEPS,
        "per_node": per_node,
        "parameters": network.size,
        "least": least,
        "marks": MARKS,
    }
    return [row | {"mean": mean, "local": local}]


def check(method: str, bits: int) -> list[Row]:
    """Return the largest difference between models computed here and by the library."""
    network, parts = Network(decay=DECAY), shards(CHECKED, 128)
    run, method_of_library = build(method, bits, CHECKED), real(method, bits, CHECKED)
    batches = [parts.batch(step, BATCH, SEED) for step in range(CHECKED_STEPS)]
    X = np.tile(network.start(0), (CHECKED, 1))
    for step, batch in enumerate(batches):
        X = run.step(X, network.gradients(X, *batch), rate(step))

    def body(comm: sparcml.Communicator) -> Any:
        x, mine = network.start(0), slice(comm.rank, comm.rank + 1)
        state = method_of_library.init(x)
        for step, (rows, labels) in enumerate(batches):
            g = network.gradients(x[None], rows[mine], labels[mine])[0]
            x, state = method_of_library.step(comm, x, g, state, lr=rate(step))
        return x

    found = np.array(sparcml.simulate(body, CHECKED, "gige", trace=0).results)
    row = {"part": "check", "method": method, "bits": bits, "nodes": CHECKED}
    return [row | {"steps": CHECKED_STEPS, "apart": float(np.abs(found - X).max())}]


def count(method: str, bits: int, nodes: int) -> list[Row]:
    """Return the bytes that a node sends per step, counted in the library."""
    size = Network().size
    used = real(method, bits, nodes)

    def sent(steps: int) -> int:
        def body(comm: sparcml.Communicator) -> None:
            x = np.zeros(size, np.float32)
            g, state = (
                np.random.default_rng(comm.rank).random(size, np.float32),
                used.init(x),
            )
            for _ in range(steps):
                x, state = used.step(comm, x, g, state, lr=0.1)

        return max(sparcml.simulate(body, nodes, "gige", trace=0).rank_bytes)

    row = {"part": "bytes", "method": method, "bits": bits, "nodes": nodes}
    return [row | {"bytes": (sent(3) - sent(1)) / 2, "parameters": size}]
