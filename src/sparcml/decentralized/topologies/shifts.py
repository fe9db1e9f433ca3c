"""Topologies in which every rank has the same neighbours relative to itself.

Ranks are points of a grid that wraps around, in row-major order: one dimension is a ring. Such
matrices are (block) circulant, and their eigenvalues are the Fourier transform of one row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from .. import mixing
from .base import Topology

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..mixing import Spectrum

Shift = tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class ShiftTopology(Topology):
    """A topology given by shifts, each with the weight 1 / (1 + number of shifts).

    Attributes:
        shape: Sides of the grid; their product is the size.
        shifts: For each step, the neighbours of the first rank as different coordinates,
            without the rank itself.
    """

    shape: tuple[int, ...]
    shifts: tuple[tuple[Shift, ...], ...]

    def _row(self, rank: int, step: int) -> dict[int, float]:
        return mixing.uniform_weights(self._shifted(rank, step, 1), rank)

    def _receivers(self, rank: int, step: int) -> list[int]:
        # In the order of the shifts: each one is a permutation of the ranks.
        return self._shifted(rank, step, -1)

    def _shifted(self, rank: int, step: int, sign: int) -> list[int]:
        if len(self.shape) == 1:
            return [(rank + sign * shift[0]) % self.size for shift in self.shifts[step]]
        place, stride = [], self.size
        for side in self.shape:
            stride //= side
            place.append(rank // stride % side)
        ranks = []
        for shift in self.shifts[step]:
            index = 0
            for side, at, by in zip(self.shape, place, shift, strict=True):
                index = index * side + (at + sign * by) % side
            ranks.append(index)
        return ranks

    def _identity(self) -> bytes:
        return repr(("shifts", self.shape, self.shifts)).encode()

    def _eigenvalues(self, step: int) -> NDArray[np.complex128]:
        row = np.zeros(self.size)
        weights = self._row(0, step)
        row[list(weights)] = list(weights.values())
        return np.fft.fftn(row.reshape(self.shape)).reshape(-1)

    @cached_property
    def _spectrum(self) -> Spectrum:
        # Circulant matrices commute, so their product has the products of the eigenvalues.
        steps = [self._eigenvalues(step) for step in range(self.period)]
        return mixing.normal_spectrum(np.prod(steps, axis=0))

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether W = W^T in every step."""
        return all(
            {
                tuple(-by % side for by, side in zip(s, self.shape, strict=True))
                for s in each
            }
            == set(each)
            for each in self.shifts
        )

    is_row_stochastic = is_column_stochastic = True

    @cached_property
    def degree(self) -> int:
        """Largest number of messages that a rank sends in a step."""
        return max(len(shifts) for shifts in self.shifts)

    @cached_property
    def messages_per_step(self) -> float:
        """Mean number of messages that a rank sends in a step."""
        return sum(len(shifts) for shifts in self.shifts) / self.period

    def _search_consensus(self, tol: float) -> float:
        """Follow the largest product of eigenvalues but the first, which is 1."""
        moduli = [np.abs(self._eigenvalues(step))[1:] for step in range(self.period)]
        with np.errstate(divide="ignore"):
            logs = [np.log(each) for each in moduli]
            period = np.sum(logs, axis=0)
        slowest = float(period.max())
        if slowest > -1e-12:
            return math.inf
        # The first periods that cannot suffice are skipped.
        periods = max(0, math.floor(math.log(tol) / slowest) - 1) if slowest > -700 else 0
        if periods * self.period > mixing.MAX_STEPS:
            return math.inf
        total = periods * period if periods else np.zeros(self.size - 1)
        steps = periods * self.period
        while True:
            total = total + logs[steps % self.period]
            steps += 1
            if total.max() <= math.log(tol) + 1e-12:
                return steps


def shift_topology(
    name: str, shape: tuple[int, ...], shifts: list[list[Shift]]
) -> ShiftTopology:
    """Return the topology of these shifts per step, which may repeat or be the rank itself."""
    distinct = []
    for each in shifts:
        places = {tuple(by % side for by, side in zip(s, shape, strict=True)) for s in each}
        distinct.append(tuple(sorted(places - {(0,) * len(shape)})))
    return ShiftTopology(name, math.prod(shape), len(shifts), shape, tuple(distinct))
