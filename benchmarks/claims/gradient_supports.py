"""Indices of the largest values of real gradients: density of the sum over P ranks.

Ranks train the network of the Fashion-MNIST workload, each on its own rows, with k of every
512 values of the first layer and error feedback. The count is the number of indices that any
rank selects in the last step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from workloads import WORKLOADS

import sparcml

if TYPE_CHECKING:
    from .base import Row

BUCKET, STEPS = 512, 60
KEPT, RANKS = (1, 4, 16), (2, 4, 8, 16, 32, 64)
LAYER = "first"


def measure(k: int, ranks: int, steps: int = STEPS, seed: int = 0) -> list[Row]:
    """Train, and count the indices of the last step."""
    work = WORKLOADS["fashion-mnist"]
    weights = work.start(seed)
    shape = weights[LAYER].shape
    draws = [np.random.default_rng([seed, rank]) for rank in range(ranks)]
    mine = [np.arange(rank, work.rows(), ranks) for rank in range(ranks)]
    owed = np.zeros((ranks, weights[LAYER].size), np.float32)
    select = sparcml.TopK(k=k, bucket=BUCKET)
    for _ in range(steps):
        sums = {name: np.zeros_like(w) for name, w in weights.items()}
        hit = np.zeros(owed.shape[1], bool)
        for rank in range(ranks):
            slopes = work.gradient(weights, draws[rank].choice(mine[rank], work.batch))
            owed[rank] += slopes[LAYER].reshape(-1)
            sent = select.select(owed[rank])
            owed[rank][sent.indices] = 0
            hit[sent.indices] = True
            slopes[LAYER] = sent.to_dense().reshape(shape)
            for name, slope in slopes.items():
                sums[name] += slope
        rate = np.float32(work.rate / ranks)
        weights = {name: w - rate * sums[name] for name, w in weights.items()}
    filled = int(hit.sum())
    percent = 100 * filled / hit.size
    return [
        {"kind": "gradients", "k": k, "ranks": ranks, "filled": filled, "percent": percent}
    ]
