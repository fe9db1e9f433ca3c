"""Gradients that every rank can compute for all ranks, and law 4 on any engine."""

from __future__ import annotations

from functools import cache

import numpy as np

from ..rosters import CONSERVING, METHODS

SHAPES = {"bias": (7,), "small": (6, 5), "table": (40, 25), "weight": (30, 6, 7)}


def gradient(rank, step, shapes=SHAPES, dtype=np.float32):
    """Return the gradients of a rank in a step, by name."""
    rng = np.random.default_rng([rank, step])
    return {n: rng.standard_normal(s).astype(dtype) for n, s in shapes.items()}


@cache
def mean_gradients(ranks, steps):
    """Return the mean over ranks of the gradients, summed over steps."""
    gradients = [gradient(rank, step) for rank in range(ranks) for step in range(steps)]
    return {
        n: np.sum([g[n] for g in gradients], axis=0, dtype=np.float64) / ranks
        for n in SHAPES
    }


def residual_of(state, name, shape):
    """Return the residual of a name; zeros if the method keeps none for it."""
    return state.get(f"residual/{name}", np.zeros(shape)).reshape(shape)


def conserves(comm, name, steps=4):
    """Laws 2 and 4: the same bits on every rank, and applied + residuals = gradients."""
    method, applied = METHODS[name], {n: np.zeros(s) for n, s in SHAPES.items()}
    state = method.init(SHAPES)
    for step in range(steps):
        mean, state = method.aggregate(comm, gradient(comm.rank, step), state)
        for n in SHAPES:
            applied[n] += mean[n]
    for n, shape in SHAPES.items():
        for other in comm.allgather(applied[n]):
            np.testing.assert_array_equal(other, applied[n])
        if name in CONSERVING:
            residual = residual_of(state, n, shape).astype(np.float64)
            total = applied[n] + comm.allreduce(residual, op="mean")
            expected = mean_gradients(comm.size, steps)[n]
            np.testing.assert_allclose(total, expected, atol=2e-4, rtol=0)
