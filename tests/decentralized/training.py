"""Small problems for decentralized methods, and what their tests measure."""

from __future__ import annotations

import numpy as np

import sparcml
from sparcml import decentralized as dec

EIGHT = np.arange(8.0)  # targets of the problem Q8; the optimum is 3.5


def simulate(body, ranks):
    """Return the results of a simulation by rank."""
    return sparcml.simulate(body, ranks, trace=0).results


def chain(n):
    """Return a path graph, with Metropolis weights."""
    W = np.zeros((n, n))
    for i in range(n - 1):
        W[i, i + 1] = W[i + 1, i] = 1 / 3
    W[np.diag_indices(n)] = 1 - W.sum(1)
    return dec.from_matrix(W)


def train(comm, method, x, gradient, steps, lr, state=None):
    """Make steps with gradient(x); return the model and the state."""
    state = method.init(x) if state is None else state
    for _ in range(steps):
        x, state = method.step(comm, x, gradient(x), state, lr=lr)
    return x, state


def quadratic(method, steps, lr=0.1, targets=EIGHT, start=0.0, dtype=np.float64):
    """Minimize (x - target)^2 / 2 with one target per rank; return the models by rank."""
    starts = np.broadcast_to(np.asarray(start, dtype), len(targets))

    def body(comm):
        target = dtype(targets[comm.rank])
        x = starts[comm.rank : comm.rank + 1].copy()
        return train(comm, method, x, lambda x: x - target, steps, lr)[0][0]

    return np.array(simulate(body, len(targets)))


def mix_only(method, models, steps):
    """Make steps without gradients from the given models; return models and states."""

    def body(comm):
        x = models[comm.rank]
        return train(comm, method, x, np.zeros_like, steps, 0.1)

    results = simulate(body, len(models))
    return np.array([x for x, _ in results]), [state for _, state in results]


def random_models(n, size=20, dtype=np.float64):
    """Return a different model for each rank."""
    return np.random.default_rng(n).standard_normal((n, size)).astype(dtype)


def spread(models):
    """Return the root mean square distance from the mean model."""
    return np.sqrt(((models - models.mean(0)) ** 2).sum(1).mean())


def assert_replicas_match(states, owned):
    """Replicas of every rank's vector must be the same bits as the rank's own."""
    copies = 0
    for state in states:
        for key, values in state.items():
            if key.startswith("replica/"):
                owner = int(key.partition("/")[2])
                np.testing.assert_array_equal(
                    values.view(np.uint8), owned[owner].view(np.uint8)
                )
                copies += 1
    assert copies
