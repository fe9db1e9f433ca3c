"""TopK: the k entries of largest magnitude, in the full vector or per bucket.

||v - TopK(v)||^2 <= (1 - k/d) ||v||^2, and no other k entries have a smaller error.

References: Strom 2015, Aji and Heafield 2017; in buckets of 512: Renggli et al. 2019
(SparCML). Convergence with error feedback: Alistarh et al. 2018, Stich et al. 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .. import kernels
from ..stream import Stream
from ..validation import check_integer
from .base import Selection, Sparsifier, check_ratio_or_k, count_entries, parse_number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .base import Vector
    from .vector import Source


@dataclass(frozen=True)
class TopK(Sparsifier):
    """Select exactly k entries of largest magnitude, or all if there are fewer.

    Magnitudes are ordered by their bits: NaN is above infinity, which is above all numbers. Ties
    go to the lowest index. Zeros are selected if nothing else is left.

    Args:
        ratio: Fraction of the entries; size * ratio is rounded half up, at least one.
        k: Number of entries; give this or `ratio`.
        bucket: Select from every `bucket` consecutive values instead of the full vector. The
            last bucket may be shorter.
    """

    ratio: float | None = None
    k: int | None = None
    bucket: int | None = None

    name = "topk"
    number = 0
    planning_cost = 0.95

    def __post_init__(self) -> None:
        check_ratio_or_k(self)
        check_integer(self, "bucket", optional=True, minimum=1)

    @classmethod
    def from_option(cls, text: str) -> TopK:
        """Build an instance from topk:RATIO."""
        return cls(ratio=parse_number(cls.name, cls.option, text))

    @classmethod
    def examples(cls) -> tuple[Sparsifier, ...]:
        """Return instances that the test rosters run."""
        return (cls(0.02), cls(k=7), cls(0.1, bucket=100))

    @classmethod
    def planned(cls) -> tuple[Sparsifier, ...]:
        """Return the ratios 1 % and 0.1 %."""
        return (cls(0.01), cls(0.001))

    @property
    def label(self) -> str:
        """Name in the tables of the planner."""
        amount = f"k={self.k}" if self.ratio is None else f"{100 * self.ratio:g} %"
        return f"TopK {amount}"

    @property
    def biased(self) -> bool:
        """True: small entries are never selected."""
        return True

    def count(self, size: int) -> int:
        """Return the exact number of selected entries."""
        if self.bucket is None:
            return count_entries(self.ratio, self.k, size)
        full, rest = divmod(size, self.bucket)
        return full * self._per_bucket() + min(self._per_bucket(), rest)

    def _per_bucket(self) -> int:
        """Return the number of entries per bucket; a shorter bucket may have fewer."""
        assert self.bucket is not None
        return count_entries(self.ratio, self.k, self.bucket)

    def select_from(self, source: Source, seed: int, state: NDArray[np.float64]) -> Stream:
        """Return the entries of largest magnitude."""
        del seed, state
        if self.bucket is None:
            pairs = source.top_k(self.count(source.size))
        else:
            pairs = source.bucket_top_k(self._per_bucket(), self.bucket)
        return Stream.unchecked(source.size, *pairs)

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
        """Select and update the residual in one pass."""
        del seed, state
        size = residual.size
        if self.bucket is None:
            selected = kernels.top_k_with_residual(
                residual, gradient, self.count(size), out, scale, velocity
            )
        else:
            selected = kernels.bucket_top_k_with_residual(
                residual, gradient, self._per_bucket(), self.bucket, out, scale, velocity
            )
        indices, values, squared_norm = selected
        return Selection(Stream.unchecked(size, indices, values), out, squared_norm)
