"""RandomK: k entries at random, the same for the same seed.

Scaled by d/k it is unbiased, with E||RandomK(v)||^2 = (d/k) ||v||^2. Unscaled, its mean squared
error is (1 - k/d) ||v||^2.

Reference: Stich et al., Sparsified SGD with Memory, 2018.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..stream import Stream
from .base import Sparsifier, check_ratio_or_k, count_entries, parse_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .vector import Source

KEY = 0x5BA5_C311  # separates this random sequence from others with the same seed


@dataclass(frozen=True)
class RandomK(Sparsifier):
    """Select k entries that depend on the seed only; all subsets are equally likely.

    Args:
        ratio: Fraction of the entries; size * ratio is rounded half up, at least one.
        k: Number of entries; give this or `ratio`.
        scaled: Multiply by size / k, so that the mean over seeds is the vector. Error feedback
            needs unscaled entries.
        shared: Whether all ranks use the same seed: then indices need not be sent.
    """

    ratio: float | None = None
    k: int | None = None
    scaled: bool = True
    shared: bool = False

    name = "randomk"
    number = 1

    def __post_init__(self) -> None:
        check_ratio_or_k(self)

    @classmethod
    def from_option(cls, text: str) -> RandomK:
        """Build an instance from randomk:RATIO."""
        return cls(ratio=parse_number(cls.name, cls.option, text))

    @classmethod
    def examples(cls) -> tuple[Sparsifier, ...]:
        """Return instances that the test rosters run."""
        return (cls(0.02), cls(0.02, scaled=False), cls(0.9, scaled=False, shared=True))

    @property
    def biased(self) -> bool:
        """Whether the entries are unscaled."""
        return not self.scaled

    @property
    def shared_indices(self) -> bool:
        """Whether all ranks use the same seed."""
        return self.shared

    def for_error_feedback(self) -> RandomK:
        """Return the unscaled sparsifier; scaled entries and their feedback would diverge."""
        return replace(self, scaled=False)

    def count(self, size: int) -> int:
        """Return the exact number of selected entries."""
        return count_entries(self.ratio, self.k, size)

    def omega(self, size: int) -> float:
        """Return omega = d/k - 1 in E||C(v) - v||^2 = omega ||v||^2, for scaled entries."""
        return size / self.count(size) - 1 if size else 0.0

    def indices(self, size: int, seed: int) -> NDArray[np.uint32]:
        """Return the selected indices of a vector of this size, ascending."""
        k = self.count(size)
        if 2 * k > size:  # draw the few that are left out
            selected = np.ones(size, np.bool_)
            selected[_draw(size, size - k, seed)] = False
            return np.flatnonzero(selected).astype(np.uint32)
        return _draw(size, k, seed)

    def select_from(self, source: Source, seed: int, state: NDArray[np.float64]) -> Stream:
        """Return the values at the selected indices."""
        del state
        indices = self.indices(source.size, seed)
        values = source.gather(indices)
        if self.scaled and indices.size:
            with np.errstate(all="ignore"):  # overflow becomes infinite
                values = values * values.dtype.type(source.size / indices.size)
        return Stream.unchecked(source.size, indices, values)


def _draw(size: int, k: int, seed: int) -> NDArray[np.uint32]:
    """Return the first k distinct numbers of a random sequence, sorted.

    The raw output of the generator is used because it is the same in all versions of NumPy.
    """
    random = np.random.Philox(key=np.array([seed % 2**64, KEY], np.uint64))
    drawn = np.empty(0, np.uint32)
    while drawn.size < k:
        raw = random.random_raw(k - drawn.size)
        # 53 bits times a size below 2^32: probabilities of two indices differ by 2^-21 at most.
        more = (raw >> np.uint64(11)) * (size / 2**53)
        drawn = np.sort(np.concatenate([drawn, more.astype(np.uint32)]))
        drawn = drawn[np.append(True, drawn[1:] != drawn[:-1])]
    return drawn
