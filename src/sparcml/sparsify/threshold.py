"""Threshold: all entries of at least a magnitude, given or adapted to a target ratio.

||v - Threshold(v)||^2 <= d lambda^2.

An adaptive threshold is the quantile of a sample, as in Deep Gradient Compression. It is reused for
a number of calls and corrected a little in each, as in Ok-Topk.

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
from .base import Selection, Sparsifier, count_entries, parse_number, subtract
from .vector import Host, Sum

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .base import Vector
    from .vector import Entries, Sampled, Source, Values

REUSED = 32  # calls until the threshold is sampled again
SAMPLE = 100  # stride of the sample, smaller if
SAMPLED = 2.0  # the sample would have fewer selected entries than this
MANY, FEW = 1.3, 0.8  # times the target: bounds after sampling
LOWER, TRIES = 0.8, 10  # factor if there are too few, and number of attempts
SOME_MORE, SOME_LESS = 5 / 4, 2 / 3  # times the target: the threshold is corrected
SCALE = 1.012  # factor of a correction
ASTRAY = 2.0  # times the target, or its inverse: the threshold is sampled again


@dataclass(frozen=True)
class Threshold(Sparsifier):
    """Select all entries of at least a magnitude, including NaN and infinities.

    With `ratio`, the number of entries varies around the target, which costs less than an exact
    selection; zeros are never selected. The state then holds the threshold and the number of
    calls that used it. `select_with_residual` reuses it if the same state is passed again.

    Args:
        value: Magnitude.
        ratio: Target fraction of the entries; give this or `value`.
        strom: Send plus or minus `value`; the residual keeps the difference. Values that are
            not finite are sent unchanged.
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
                f"Threshold: exactly one of value and ratio must be given, got value={self.value}, "
                f"ratio={self.ratio}"
            )
        check_ratio(self)
        check_real(self, "value", optional=True)
        if self.value is not None and not 0 < self.value < math.inf:
            raise ValueError(f"Threshold: value must be above 0, got {self.value}")
        if self.strom and self.value is None:
            raise ValueError("Threshold: value must be given if strom is set, got None")

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
        """True: small entries are never selected."""
        return True

    def count(self, size: int) -> int | None:
        """Return None: the number depends on the values."""
        del size
        return None

    def initial_state(self) -> NDArray[np.float64]:
        """Return the adaptive threshold (0: none yet) and the number of calls that used it."""
        return np.zeros(0 if self.ratio is None else 2)

    def select_from(self, source: Source, seed: int, state: NDArray[np.float64]) -> Stream:
        """Return the entries that reach the threshold."""
        del seed
        threshold, sampled = self._choose(source, state)
        entries = source.at_least(threshold)
        return self._stream(source, entries, state, sampled=sampled)

    def _select_into(
        self,
        residual: Vector,
        gradient: Vector,
        out: Vector,
        seed: int,
        state: NDArray[np.float64],
        scale: float,
        velocity: kernels.Velocity | None,
    ) -> Selection:
        """Select in one pass, unless the threshold must be corrected."""
        del seed
        threshold, sampled = self._choose(Sum(residual, gradient, scale, velocity), state)
        *entries, squared_norm = kernels.at_least_with_residual(
            residual, gradient, threshold, out, scale, velocity
        )
        stream = self._stream(Host(out), (entries[0], entries[1]), state, sampled=sampled)
        if self.strom:
            subtract(out, stream)
        else:
            indices, values = stream.pairs()
            kernels.scatter_assign(out, indices, np.zeros_like(values))
        return Selection(stream, out, squared_norm)

    def _choose(self, source: Sampled, state: NDArray[np.float64]) -> tuple[float, bool]:
        """Return the threshold, and whether it was just sampled."""
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
        entries: Entries,
        state: NDArray[np.float64],
        *,
        sampled: bool,
    ) -> Stream:
        """Return the stream of the entries, and correct the threshold."""
        target = count_entries(self.ratio, None, source.size) if self.ratio else 0
        if self.strom:
            entries = entries[0], _plus_minus(entries[1], self.value or 0.0)
        elif sampled:
            entries = _lowered(source, entries, target, state)
        elif self.ratio:
            entries = _reused(entries, target, state)
        return Stream.unchecked(source.size, *entries)


def _plus_minus(values: Values, size: float) -> Values:
    """Return `size` with the signs of the values; values that are not finite are unchanged."""
    return np.where(
        np.isfinite(values), np.copysign(values.dtype.type(size), values), values
    )


def _sampled(source: Sampled, target: int) -> float:
    """Return the magnitude that the target fraction of a sample reaches."""
    if not source.size:
        return _tiny(np.dtype(np.float32))
    stride = max(1, min(SAMPLE, int(target / SAMPLED)))
    sample = source.sample(stride)
    wanted = max(1, round(sample.size * target / source.size))
    return _smallest(kernels.top_k(sample, wanted)[1])


def _lowered(
    source: Source, entries: Entries, target: int, state: NDArray[np.float64]
) -> Entries:
    """Lower a sampled threshold while too few entries reach it; cut if too many do."""
    for _ in range(TRIES):
        if entries[0].size >= FEW * target or state[0] <= _tiny(entries[1].dtype):
            break  # in the second case all nonzeros are selected
        state[0] = max(state[0] * LOWER, _tiny(entries[1].dtype))
        entries = source.at_least(state[0])
    state[1] = 1
    return _cut(entries, target, state) if entries[0].size > MANY * target else entries


def _reused(entries: Entries, target: int, state: NDArray[np.float64]) -> Entries:
    """Correct a reused threshold a little; far from the target, sample in the next call."""
    count = entries[0].size
    state[1] += 1
    if count > ASTRAY * target:
        entries = _cut(entries, target, state)
    if not target / ASTRAY <= count <= ASTRAY * target:
        state[0] = 0
    elif count < SOME_LESS * target:
        state[0] /= SCALE
    elif count > SOME_MORE * target:
        state[0] *= SCALE
    return entries


def _cut(entries: Entries, target: int, state: NDArray[np.float64]) -> Entries:
    """Return exactly `target` of the entries, the largest."""
    chosen, values = kernels.top_k(entries[1], target)
    state[0] = _smallest(values)
    return entries[0][chosen], values


def _smallest(values: NDArray[np.float32] | NDArray[np.float64]) -> float:
    """Return the smallest magnitude, above zero; infinite if all values are NaN."""
    with np.errstate(invalid="ignore"):
        smallest = float(np.fmin.reduce(np.abs(values)))
    return math.inf if math.isnan(smallest) else max(smallest, _tiny(values.dtype))


def _tiny(dtype: np.dtype[np.float32] | np.dtype[np.float64]) -> float:
    """Return the smallest positive magnitude of a dtype."""
    return float(np.finfo(dtype).smallest_subnormal)
