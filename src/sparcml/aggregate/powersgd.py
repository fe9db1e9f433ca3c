"""PowerSGD: matrices as products of two narrow factors, which can be summed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from .. import buffer_pool
from ..kernels.low_rank import (
    expand_factors,
    orthonormalize,
    project_columns,
    project_corrected_rows,
    project_rows,
)
from ..planning.candidates import Planning, Reduction
from ..validation import as_integer
from .base import NANO, Method
from .error_feedback import load_residual
from .reduce import mean_arrays
from .state import RESIDUAL, STEP, key, zeros
from .uncompressed import mean_uncompressed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..communicator.communicator import Communicator
    from ..stream.arrays import Values
    from .gradients import Parameter, Shape
    from .state import State

FACTOR = "factor"


@dataclass(frozen=True)
class PowerSGD(Method):
    """One step of subspace iteration on the mean of the ranks' matrices.

        M = residual + gradient          n x m; more dimensions: the first x the others
        P = mean(M Q);  P = orthonormal(P)
        Q = mean(M^T P);  mean = P Q^T
        residual = M - mean

    Q is kept from step to step (warm start) and approaches the best factor. Ranks send
    r (n + m) values instead of n m. All operations are linear in M: the result is that of one
    rank with the mean matrix. Vectors, and matrices whose factors are not smaller, are not
    compressed.

    Args:
        rank: Number of columns of the factors.
        warm_start: Whether Q is kept; otherwise every step draws a random one.
        error_feedback: Whether to add M - mean to the next gradient.
        seed: Random seed of the first Q, the same on all ranks.
        nonfinite: "raise" or "propagate", see `Method`.

    Reference: Vogels, Karimireddy, Jaggi: PowerSGD, NeurIPS 2019.
    """

    name: ClassVar[str] = "powersgd"
    number: ClassVar[int] = 3
    option: ClassVar[str] = "RANK"
    planning_cost: ClassVar[float] = 9.6  # of rank 4

    rank: int = 4
    warm_start: bool = True
    error_feedback: bool = True
    seed: int = 0
    nonfinite: str = "raise"

    def __post_init__(self) -> None:
        super().__post_init__()
        as_integer("PowerSGD", "rank", self.rank, minimum=1)

    @classmethod
    def from_option(cls, text: str) -> Self:
        """Return the method with this rank."""
        if not text:
            return cls()
        if not text.isdecimal():
            raise ValueError(f"{cls.name}: {cls.option} must be an integer, got {text!r}")
        return cls(rank=int(text))

    @classmethod
    def examples(cls) -> tuple[Method, ...]:
        """Return the instances that the tests run."""
        return (cls(rank=2), cls(rank=1, warm_start=False))

    @classmethod
    def planned(cls) -> tuple[Method, ...]:
        """Return rank 4."""
        return (cls(rank=4),)

    def planning(self, shapes: Sequence[Shape]) -> Planning:
        """Describe the allreduces of the left factors, the right ones and the rest."""
        left = right = rest = 0
        for shape in shapes:
            n, m = _matrix_shape(shape)
            if self.compresses(shape):
                left, right = left + self.rank * n, right + self.rank * m
            else:
                rest += n * m
        return Planning(
            f"PowerSGD rank {self.rank}",
            ("native",),
            NANO * self.planning_cost,
            tuple(Reduction(size, size) for size in (left, right, rest)),
            sequential=True,
        )

    @property
    def keeps_residual(self) -> bool:
        """Whether there is error feedback."""
        return self.error_feedback

    def compresses(self, shape: Shape) -> bool:
        """Return whether the factors are smaller than the matrix."""
        n, m = _matrix_shape(shape)
        return len(shape) > 1 and self.rank * (n + m) < n * m

    def compresses_shape(self, name: str, shape: Shape) -> bool:
        """Return whether the factors are smaller than the matrix."""
        del name
        return self.compresses(shape)

    def _begin(self, shapes: Mapping[str, Shape], state: State) -> None:
        for index, (name, shape) in enumerate(shapes.items()):
            if self.compresses(shape):
                if self.error_feedback:
                    zeros(state, RESIDUAL, name, math.prod(shape))
                if self.warm_start:
                    state[key(FACTOR, name)] = self._random_factor(index, 0, shape)

    def _random_factor(self, index: int, step: int, shape: Shape) -> Values:
        rng = np.random.default_rng([self.seed, index, step])
        return rng.standard_normal((_matrix_shape(shape)[1], self.rank)).astype(np.float32)

    def _step(
        self, comm: Communicator, parameters: Sequence[Parameter], state: State
    ) -> tuple[dict[str, Any], State]:
        matrices = [p for p in parameters if p.stream is None and self.compresses(p.shape)]
        names = {p.name for p in matrices}
        others = [p for p in parameters if p.name not in names]
        means = mean_uncompressed(self, comm, others, state)
        new: State = {STEP: state[STEP]}
        right = [self._first_factor(i, p, state) for i, p in enumerate(matrices)]

        # All ranks compute the following from the same factors: kernels, and not a BLAS,
        # whose rounding depends on the processor, keep their results equal.
        projected = [
            self._correct_and_project(comm, p, Q, state)
            for p, Q in zip(matrices, right, strict=True)
        ]
        views = [M for M, _ in projected]
        left = mean_arrays(comm, [P for _, P in projected])
        for P in left:
            orthonormalize(P)
        right = mean_arrays(comm, list(map(project_columns, views, left)))

        for p, M, P, Q in zip(matrices, views, left, right, strict=True):
            residual = M if self.error_feedback else None
            out = None if p.out is None else p.out.reshape(M.shape)
            means[p.name] = expand_factors(P, Q, out, residual).reshape(-1)
            if residual is not None:
                new[key(RESIDUAL, p.name)] = residual.reshape(-1)
            if self.warm_start:
                new[key(FACTOR, p.name)] = np.ascontiguousarray(Q.T)
        return means, new

    def _correct_and_project(
        self, comm: Communicator, p: Parameter, Q: Values, state: State
    ) -> tuple[Values, Values]:
        """Return M = residual + gradient as a matrix, and M Q."""
        shape = _matrix_shape(p.shape)
        residual, scale = load_residual(state, p)
        gradient = p.values.reshape(shape)
        if residual is None and not self.error_feedback:
            self.check_finite(comm, p.name, p.values)
            return gradient, project_rows(gradient, Q)
        if residual is None:
            residual = np.zeros_like(p.values)
        out = residual if p.reuses_state else buffer_pool.empty(p.size, p.values.dtype)
        M = out.reshape(shape)
        P, finite = project_corrected_rows(residual.reshape(shape), gradient, Q, M, scale)
        norm = 0.0 if finite else math.inf
        self.check_finite(comm, p.name, p.values, norm, residual)
        return M, P

    def _first_factor(self, index: int, p: Parameter, state: State) -> Values:
        """Return the factor Q that the step begins with, transposed."""
        factor = state.get(key(FACTOR, p.name)) if self.warm_start else None
        if factor is None:
            factor = self._random_factor(index, int(state[STEP]), p.shape)
        elif factor.shape != (expected := (_matrix_shape(p.shape)[1], self.rank)):
            raise ValueError(
                f"PowerSGD: {key(FACTOR, p.name)!r} of the state must have the shape "
                f"{expected}, got {factor.shape}; create the state with init"
            )
        # A zero matrix gives a zero factor, and all later ones would stay zero.
        if (empty := ~factor.any(axis=0)).any():
            random = self._random_factor(index, int(state[STEP]), p.shape)
            factor = np.where(empty, random, factor)
        # Only its directions matter, and the product with M must not under- or overflow.
        directions = (factor / np.abs(factor).max(axis=0)).astype(
            p.values.dtype, copy=False
        )
        return np.ascontiguousarray(directions.T)


def _matrix_shape(shape: Shape) -> tuple[int, int]:
    n = shape[0] if shape else 1
    return n, math.prod(shape[1:])
