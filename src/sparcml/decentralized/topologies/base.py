"""Base class of topologies: who talks to whom in each step, and with which weights."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ...validation import as_integer
from .. import mixing

if TYPE_CHECKING:
    from ..mixing import Matrix, Spectrum


@dataclass(frozen=True, eq=False, repr=False)
class Topology(ABC):
    """A sequence of mixing matrices that repeats after `period` steps.

    In each step rank i replaces its data by the sum of W[i, j] times the data of rank j. A
    topology is immutable and hashable. Neighbours and weights of a rank do not need the full
    matrix, so that thousands of ranks are fine.

    Attributes:
        name: The call that constructs it, such as "ring(16)".
        size: Number of ranks.
        period: Number of steps after which the matrices repeat; 1 if they are all the same.
    """

    name: str
    size: int
    period: int

    @abstractmethod
    def _row(self, rank: int, step: int) -> dict[int, float]:
        """Return the nonzero weights of a row by rank, in ascending order."""

    @abstractmethod
    def _receivers(self, rank: int, step: int) -> list[int]:
        """Return the other ranks that give this one a weight, in the order of sends."""

    @abstractmethod
    def _identity(self) -> bytes:
        """Return bytes that differ for topologies with different matrices."""

    # What a rank needs

    def neighbors(self, rank: int, step: int = 0) -> list[int]:
        """Return the ranks whose data a rank receives in a step, in ascending order."""
        return [j for j in self._row(*self._check(rank, step)) if j != rank]

    def receivers(self, rank: int, step: int = 0) -> list[int]:
        """Return the ranks that receive the data of a rank in a step.

        They are in the order in which the rank should send: if all ranks do, few or no two
        of them send to the same rank at a time.
        """
        return self._receivers(*self._check(rank, step))

    def weights(self, rank: int, step: int = 0) -> tuple[float, dict[int, float]]:
        """Return a rank's own weight, and the weights of its neighbours by rank."""
        row = dict(self._row(*self._check(rank, step)))
        return row.pop(rank, 0.0), row

    @cached_property
    def fingerprint(self) -> int:
        """Hash of the topology, of 64 bits, by which ranks compare theirs."""
        return int.from_bytes(hashlib.sha256(self._identity()).digest()[:8], "little")

    # What people want to know

    def matrix(self, step: int = 0) -> Matrix:
        """Return the mixing matrix of a step, read-only."""
        W = np.zeros((self.size, self.size))
        for rank in range(self.size):
            row = self._row(*self._check(rank, step))
            W[rank, list(row)] = list(row.values())
        W.flags.writeable = False
        return W

    @cached_property
    def degree(self) -> int:
        """Largest number of messages that a rank sends in a step."""
        return max(len(self._receivers(r, s)) for r, s in self._all_rows())

    @cached_property
    def messages_per_step(self) -> float:
        """Mean number of messages that a rank sends in a step."""
        count = sum(len(self._receivers(r, s)) for r, s in self._all_rows())
        return count / (self.size * self.period)

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether W = W^T in every step."""
        return all(
            self._row(j, step).get(rank) == weight
            for rank, step in self._all_rows()
            for j, weight in self._row(rank, step).items()
        )

    @cached_property
    def is_row_stochastic(self) -> bool:
        """Whether the weights of every rank add up to 1."""
        return all(
            abs(math.fsum(self._row(rank, step).values()) - 1) <= mixing.TOLERANCE
            for rank, step in self._all_rows()
        )

    @cached_property
    def is_column_stochastic(self) -> bool:
        """Whether all columns add up to 1, so that mixing preserves the mean of the ranks."""
        for step in range(self.period):
            rows = [self._row(rank, step) for rank in range(self.size)]
            if np.abs(mixing.column_sums(rows) - 1).max() > mixing.TOLERANCE:
                return False
        return True

    @property
    def is_doubly_stochastic(self) -> bool:
        """Whether rows and columns add up to 1."""
        return self.is_row_stochastic and self.is_column_stochastic

    @property
    def spectral_gap(self) -> float:
        """1 - max(|lambda_2|, |lambda_n|): 1 is a full average, 0 is no progress.

        It is that of the product of all matrices if the topology changes from step to step.
        """
        return 1 - self._spectrum.slowest

    @property
    def lambda_2(self) -> float:
        """Second-largest eigenvalue; the second-largest modulus if some are complex."""
        return self._spectrum.lambda_2

    @property
    def lambda_min(self) -> float:
        """Smallest eigenvalue; the smallest real part if some are complex."""
        return self._spectrum.lambda_min

    @property
    def rho(self) -> float:
        """Norm of W - J: the factor by which a step, or a period, shrinks differences."""
        return self._spectrum.rho

    @cached_property
    def _spectrum(self) -> Spectrum:
        product = self.matrix(0)
        for step in range(1, self.period):
            product = self.matrix(step) @ product
        return mixing.spectrum(product)

    def steps_to_consensus(self, tol: float = 1e-6) -> float:
        """Return the number of steps that shrink all differences between ranks to `tol`.

        It is infinity if no number of steps does.
        """
        if not 0 < tol < 1:
            raise ValueError(
                f"steps_to_consensus: tol must be between 0 and 1, got {tol!r}"
            )
        if self.size == 1:
            return 0
        if self.period == 1 and self.is_symmetric:
            return mixing.steps_of_factor(self.rho, tol)
        return self._search_consensus(tol)

    def _search_consensus(self, tol: float) -> float:
        """Double the number of periods until it suffices, then add single steps again."""
        matrices = [self.matrix(step) for step in range(self.period)]
        product = np.eye(self.size)
        for count, W in enumerate(matrices, 1):
            product = W @ product
            if mixing.disagreement(product) <= tol:
                return count
        powers = [product]  # of one period: 1, 2, 4, ... times
        while mixing.disagreement(powers[-1]) > tol:
            if self.period << len(powers) > mixing.MAX_STEPS:
                return math.inf
            powers.append(powers[-1] @ powers[-1])
        periods, done = 0, np.eye(self.size)
        for exponent in reversed(range(len(powers))):
            further = powers[exponent] @ done
            if mixing.disagreement(further) > tol:
                periods, done = periods + (1 << exponent), further
        steps = periods * self.period
        while True:
            done = matrices[steps % self.period] @ done
            steps += 1
            if mixing.disagreement(done) <= tol:
                return steps

    def lazy(self) -> Topology:
        """Return the topology with (I + W) / 2: all eigenvalues become nonnegative."""
        from .lazy import LazyTopology

        return LazyTopology(f"{self.name}.lazy()", self.size, self.period, self)

    def _check(self, rank: int, step: int) -> tuple[int, int]:
        rank = as_integer(self.name, "rank", rank)
        if not 0 <= rank < self.size:
            raise ValueError(f"{self.name}: rank must be in [0, {self.size}), got {rank}")
        return rank, as_integer(self.name, "step", step, 0) % self.period

    def _all_rows(self) -> list[tuple[int, int]]:
        return [(rank, step) for step in range(self.period) for rank in range(self.size)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Topology) and other.fingerprint == self.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return self.name

    def _repr_svg_(self) -> str | None:
        from ..drawing import svg

        return svg(self)
