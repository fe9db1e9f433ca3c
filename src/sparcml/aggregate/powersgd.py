"""PowerSGD: matrices as products of two narrow ones, which can be summed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..communicator.arguments import whole
from .base import Method
from .reduce import dense_sums
from .state import RESIDUAL, STEP, key, load, zeros
from .uncompressed import mean_uncompressed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..communicator.communicator import Communicator
    from ..stream.stream import Values
    from .gradients import Parameter, Shape
    from .state import State

FACTOR = "factor"


@dataclass(frozen=True)
class PowerSGD(Method):
    """One step of subspace iteration on the mean of the ranks' matrices, without forming it.

        M = residual + gradient          n x m; of more dimensions: the first x the rest
        P = mean(M Q);  P = orthonormal(P)
        Q = mean(M^T P);  mean = P Q^T
        residual = M - mean

    Q stays from step to step (warm start), so that it comes close to the best factor.
    r (n + m) values travel in place of n m. Everything is linear in M: the result is that of
    one rank with the mean matrix. Matrices for which this does not pay, and vectors, are not
    compressed.

    Args:
        rank: Columns of the factors.
        warm_start: Whether Q stays; otherwise a new random one every step.
        error_feedback: Whether what the product leaves out is added to the next gradient.
        seed: Of the first Q, the same on all ranks.
        nonfinite: "raise" or "propagate", see `Method`.

    Reference: Vogels, Karimireddy, Jaggi: PowerSGD, NeurIPS 2019.
    """

    rank: int = 4
    warm_start: bool = True
    error_feedback: bool = True
    seed: int = 0
    nonfinite: str = "raise"

    def __post_init__(self) -> None:
        super().__post_init__()
        if whole("PowerSGD: rank", self.rank) < 1:
            raise ValueError(f"PowerSGD: rank must be at least 1, got {self.rank}")

    @property
    def keeps_residual(self) -> bool:
        """With feedback."""
        return self.error_feedback

    def compresses(self, shape: Shape) -> bool:
        """Whether the factors are smaller than the matrix."""
        n, m = _sides(shape)
        return len(shape) > 1 and self.rank * (n + m) < n * m

    def _begin(self, shapes: Mapping[str, Shape], state: State) -> None:
        for place, (name, shape) in enumerate(shapes.items()):
            if self.compresses(shape):
                if self.error_feedback:
                    zeros(state, RESIDUAL, name, math.prod(shape))
                if self.warm_start:
                    state[key(FACTOR, name)] = self._random(place, 0, shape)

    def _random(self, place: int, step: int, shape: Shape) -> Values:
        rng = np.random.default_rng([self.seed, place, step])
        return rng.standard_normal((_sides(shape)[1], self.rank)).astype(np.float32)

    def _step(
        self, comm: Communicator, parameters: Sequence[Parameter], state: State
    ) -> tuple[dict[str, Any], State]:
        matrices = [p for p in parameters if p.stream is None and self.compresses(p.shape)]
        chosen = {p.name for p in matrices}
        rest = [p for p in parameters if p.name not in chosen]
        means = mean_uncompressed(self, comm, rest, state)
        new: State = {STEP: state[STEP]}
        owed = [self._owed(comm, p, state) for p in matrices]
        right = [self._right(i, p, state) for i, p in enumerate(matrices)]

        left = _means(comm, [M @ Q for M, Q in zip(owed, right, strict=True)])
        left = [np.linalg.qr(P)[0] for P in left]
        right = _means(comm, [M.T @ P for M, P in zip(owed, left, strict=True)])

        for p, M, P, Q in zip(matrices, owed, left, right, strict=True):
            product = P @ Q.T
            means[p.name] = product.reshape(-1)
            if self.error_feedback:
                new[key(RESIDUAL, p.name)] = (M - product).reshape(-1)
            if self.warm_start:
                new[key(FACTOR, p.name)] = Q
        return means, new

    def _owed(self, comm: Communicator, p: Parameter, state: State) -> Values:
        residual = load(state, RESIDUAL, p)
        self.check_finite(comm, p.name, p.values)
        owed = p.values if residual is None else p.values + residual
        return owed.reshape(_sides(p.shape))

    def _right(self, place: int, p: Parameter, state: State) -> Values:
        """The factor to begin with."""
        found = state.get(key(FACTOR, p.name)) if self.warm_start else None
        if found is None:
            found = self._random(place, int(state[STEP]), p.shape)
        elif found.shape != (due := (_sides(p.shape)[1], self.rank)):
            raise ValueError(
                f"PowerSGD: the state's {key(FACTOR, p.name)!r} is {found.shape}, not {due}: "
                f"make the state with init, from the old state if there is one"
            )
        # Of a zero matrix comes a zero factor, from which there is no way back.
        if (blank := ~found.any(axis=0)).any():
            found = np.where(blank, self._random(place, int(state[STEP]), p.shape), found)
        # Only its directions count, and the product with M must neither vanish nor overflow.
        directions: Values = found / np.abs(found).max(axis=0)
        return directions.astype(p.values.dtype, copy=False)


def _sides(shape: Shape) -> tuple[int, int]:
    n = shape[0] if shape else 1
    return n, math.prod(shape[1:])


def _means(comm: Communicator, factors: Sequence[Values]) -> list[Values]:
    """The mean of each over all ranks, in one call."""
    if not factors:
        return []
    sums = dense_sums(comm, [f.reshape(-1) for f in factors])
    return [
        (total / total.dtype.type(comm.size)).reshape(f.shape)
        for total, f in zip(sums, factors, strict=True)
    ]
