"""Threshold: all entries of at least a magnitude, given or found for a target share.

||v - Threshold(v)||^2 <= d lambda^2.

Found: a sample's quantile, as in Deep Gradient Compression, is reused for a number of
calls and corrected a little in each, as in Ok-Topk.

References: Strom 2015 (+-lambda), Dryden et al. 2016; Lin et al., Deep Gradient
Compression, 2018; Li and Hoefler, Ok-Topk, 2022.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .. import kernels
from ..stream import Stream
from ..validation import check_ratio, check_real
from .base import Selection, Sparsifier, parse_number, subtract
from .ratio import count_entries
from .vector import Host, Sum

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .base import Vector
    from .vector import Entries, Sampled, Source, Values

REUSED = 32  # calls until the threshold is sampled again
SAMPLE = 100  # every so manieth value, unless
SAMPLED = 2.0  # the sample has fewer of the target than this
MANY, FEW = 1.3, 0.8  # times the target: bounds after sampling
LOWER, TRIES = 0.8, 10  # by how much it is lowered if there are too few, and how often
SOME_MORE, SOME_LESS = 5 / 4, 2 / 3  # times the target: the threshold is corrected
SCALE = 1.012  # by how much
ASTRAY = 2.0  # times too many or too few: the threshold is given up


@dataclass(frozen=True)
class Threshold(Sparsifier):
    """All entries of at least a magnitude; NaN and infinities among them.

    With `ratio`, the number of entries varies around the target, which costs less than an exact
    selection; zeros are never selected. The state then holds the threshold and the number of
    calls that used it. `select_with_residual` reuses it if the same state is passed again.

    Args:
        value: The magnitude.
        ratio: Find one that about this share of the entries reaches.
        strom: Send plus or minus `value` and keep the difference; values that are not
            finite are sent as they are.
    """

    value: float | None = None
    ratio: float | None = None
    strom: bool = False

    name = "threshold"
    number = 2
    option = "VALUE"

    def __post_init__(self) -> None:
        if (self.value is None) == (self.ratio is None):
            raise ValueError(
                f"Threshold: give value or ratio, one of the two, got value={self.value}, "
                f"ratio={self.ratio}"
            )
        check_ratio(self)
        check_real(self, "value", optional=True)
        if self.value is not None and not 0 < self.value < math.inf:
            raise ValueError(f"Threshold: value must be above 0, got {self.value}")
        if self.strom and self.value is None:
            raise ValueError("Threshold: strom sends plus or minus value: give one")

    @classmethod
    def from_option(cls, text: str) -> Threshold:
        """Build an instance from threshold:VALUE."""
        return cls(value=parse_number(cls.name, cls.option, text))

    @classmethod
    def examples(cls) -> tuple[Sparsifier, ...]:
        """Return instances that the test rosters run."""
        return (cls(2.0), cls(ratio=0.02), cls(2.0, strom=True))

    @property
    def biased(self) -> bool:
        """Yes: small entries never come."""
        return True

    def count(self, size: int) -> int | None:
        """The data decide."""
        del size
        return None

    def initial_state(self) -> NDArray[np.float64]:
        """Of an adaptive one: the threshold (0: none yet) and the calls it has served."""
        return np.zeros(0 if self.ratio is None else 2)

    def select_from(self, source: Source, seed: int, state: NDArray[np.float64]) -> Stream:
        """All that reach the threshold."""
        del seed
        threshold, sampled = self._choose(source, state)
        found = source.at_least(threshold)
        return self._stream(source, found, state, sampled=sampled)

    def _select_into(
        self,
        residual: Vector,
        gradient: Vector,
        out: Vector,
        seed: int,
        state: NDArray[np.float64],
    ) -> Selection:
        """In one pass, unless a threshold must be corrected."""
        del seed
        threshold, sampled = self._choose(Sum(residual, gradient), state)
        *found, squares = kernels.at_least_with_residual(residual, gradient, threshold, out)
        stream = self._stream(Host(out), (found[0], found[1]), state, sampled=sampled)
        if self.strom:
            subtract(out, stream)
        else:
            indices, values = stream.pairs()
            kernels.scatter_assign(out, indices, np.zeros_like(values))
        return Selection(stream, out, squares)

    def _choose(self, source: Sampled, state: NDArray[np.float64]) -> tuple[float, bool]:
        """The threshold, and whether it was just sampled."""
        if self.value is not None:
            return self.value, False
        if state[0] > 0 and state[1] < REUSED:
            return float(state[0]), False
        target = count_entries(self.ratio, None, source.size)
        state[:] = _sampled(source, target), 0
        return float(state[0]), True

    def _stream(
        self,
        source: Source,
        found: Entries,
        state: NDArray[np.float64],
        *,
        sampled: bool,
    ) -> Stream:
        """What is sent of that which was found."""
        target = count_entries(self.ratio, None, source.size) if self.ratio else 0
        if self.strom:
            found = found[0], _plus_minus(found[1], self.value or 0.0)
        elif sampled:
            found = _settled(source, found, target, state)
        elif self.ratio:
            found = _reused(found, target, state)
        return Stream.unchecked(source.size, *found)


def _plus_minus(values: Values, size: float) -> Values:
    """That size with the values' signs; what is not finite stays as it is."""
    return np.where(
        np.isfinite(values), np.copysign(values.dtype.type(size), values), values
    )


def _sampled(source: Sampled, target: int) -> float:
    """The magnitude that as great a share of a sample reaches."""
    if not source.size:
        return _tiny(np.dtype(np.float32))
    stride = max(1, min(SAMPLE, int(target / SAMPLED)))
    sample = source.sample(stride)
    share = max(1, round(sample.size * target / source.size))
    return _least(kernels.top_k(sample, share)[1])


def _settled(
    source: Source, found: Entries, target: int, state: NDArray[np.float64]
) -> Entries:
    """After sampling: lower the threshold while too few reach it; cut if too many do."""
    for _ in range(TRIES):
        if found[0].size >= FEW * target or state[0] <= _tiny(found[1].dtype):
            break  # in the second case all that is not zero is there
        state[0] = max(state[0] * LOWER, _tiny(found[1].dtype))
        found = source.at_least(state[0])
    state[1] = 1
    return _cut(found, target, state) if found[0].size > MANY * target else found


def _reused(found: Entries, target: int, state: NDArray[np.float64]) -> Entries:
    """Follow the data slowly; if they have run away, sample in the next call."""
    count = found[0].size
    state[1] += 1
    if count > ASTRAY * target:
        found = _cut(found, target, state)
    if not target / ASTRAY <= count <= ASTRAY * target:
        state[0] = 0
    elif count < SOME_LESS * target:
        state[0] /= SCALE
    elif count > SOME_MORE * target:
        state[0] *= SCALE
    return found


def _cut(found: Entries, target: int, state: NDArray[np.float64]) -> Entries:
    """The largest of what was found: exactly the target."""
    chosen, values = kernels.top_k(found[1], target)
    state[0] = _least(values)
    return found[0][chosen], values


def _least(values: NDArray[np.float32] | NDArray[np.float64]) -> float:
    """The least magnitude of some; above zero and, of NaN alone, infinite."""
    with np.errstate(invalid="ignore"):
        least = float(np.fmin.reduce(np.abs(values)))
    return math.inf if math.isnan(least) else max(least, _tiny(values.dtype))


def _tiny(dtype: np.dtype[np.float32] | np.dtype[np.float64]) -> float:
    """The least magnitude there is."""
    return float(np.finfo(dtype).smallest_subnormal)
