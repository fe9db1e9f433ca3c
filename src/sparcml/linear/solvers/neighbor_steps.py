"""Steps of decentralized SGD: each rank has its own model, and mixes it with its neighbours.

The gradient of a rank is that of its own rows of the batch, divided by the mean number of rows
per rank. So the mean of all ranks' gradients is the gradient of the batch, and the mean of the
models moves as in SGD with an allreduce.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import kernels
from ...costs import ring_nbytes
from .sgd_state import INTERCEPT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator
    from ...decentralized import Method
    from ...stream import Stream
    from .sgd import SGD
    from .sgd_state import SGDState


class NeighborSteps:
    """The steps of a decentralized method on one rank, with their costs so far.

    Args:
        comm: The ranks.
        method: A decentralized method.
        solver: Its penalty and intercept are used.

    Attributes:
        seconds: Seconds in steps of the method.
        dense_bytes: Bytes that a rank would have sent in dense rings.
    """

    def __init__(self, comm: Communicator, method: Method, solver: SGD) -> None:
        self.comm, self.method, self.solver = comm, method, solver
        self.seconds, self.dense_bytes = 0.0, 0.0

    def step(self, state: SGDState, gradient: Stream, learning_rate: float) -> None:
        """Update this rank's model with its gradient and its neighbours' models. Collective.

        Args:
            state: State of the solver; it is changed.
            gradient: Gradient of the loss of this rank's rows; its last entry is the
                intercept's, if there is one.
            learning_rate: Learning rate.
        """
        start = self.comm.now()
        x, intercept = self._vector(state), self.solver.intercept
        g = np.zeros_like(x)
        kernels.scatter_assign(g, *gradient.pairs())
        if intercept:
            g[-1] *= self.solver.intercept_rate
        if self.solver.penalty.l2:
            features = state.features
            g[:features] += x.dtype.type(self.solver.penalty.l2) * x[:features]
        x, state.method = self.method.step(self.comm, x, g, state.method, learning_rate)
        self._write(state, x)
        self.seconds += self.comm.now() - start
        self.dense_bytes += ring_nbytes(self.comm.size, x.nbytes)

    def end_epoch(self, state: SGDState) -> None:
        """Write the mean model and the distance of the models to the state. Collective."""
        start = self.comm.now()
        x = self._vector(state)
        x, state.method = self.method.flush(self.comm, x, state.method)
        self._write(state, x)
        state.averaged = np.array(self.method.mean(self.comm, x, state.method))
        state.consensus_distance = self.method.consensus_distance(self.comm, x)
        self.seconds += self.comm.now() - start

    def _vector(self, state: SGDState) -> NDArray[Any]:
        """Return a copy of the weights, followed by the intercept if there is one."""
        weights = state.model.weights
        if not self.solver.intercept:
            return weights.copy()
        return np.append(weights, weights.dtype.type(state.model.numbers[INTERCEPT]))

    def _write(self, state: SGDState, x: NDArray[Any]) -> None:
        state.model.weights[:] = x[: state.features]
        if self.solver.intercept:
            state.model.numbers[INTERCEPT] = x[-1]


def check_decentralized(solver: SGD) -> None:
    """Raise ValueError for settings that a decentralized method does not support."""
    excluded = {
        "penalty": (f"without l1, got {solver.penalty}", bool(solver.penalty.l1)),
        "momentum": (
            f"0, got {solver.momentum}; use DPSGD(momentum=)",
            solver.momentum > 0,
        ),
        "adaptive": (f"None, got {solver.adaptive}", solver.adaptive is not None),
        "communication": ("sparse, got dense", solver.communication == "dense"),
        "algorithm": (f"auto, got {solver.algorithm}", solver.algorithm != "auto"),
    }
    for setting, (requirement, is_set) in excluded.items():
        if is_set:
            raise ValueError(
                f"SGD: {setting} must be {requirement}, with a decentralized method"
            )
