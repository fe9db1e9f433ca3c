"""BlockTopK: the k blocks of largest norm, such as rows of a matrix.

There is one index per block, so indices cost little.
||v - BlockTopK(v)||^2 <= (1 - k/blocks) ||v||^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .. import kernels
from ..stream import Stream
from ..validation import check_integer
from .base import Sparsifier, check_ratio_or_k, count_entries, parse_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .vector import Source


@dataclass(frozen=True)
class BlockTopK(Sparsifier):
    """Select the blocks of consecutive values with the largest norm; ties go to the first.

    The entries of the stream are blocks. If the size is not a multiple of the block, the last
    block is shorter and the entries are single values. A block with NaN counts as the largest.

    Args:
        ratio: Fraction of the blocks; their number * ratio is rounded half up, at least one.
        k: Number of blocks; give this or `ratio`.
        block: Values per block.
    """

    ratio: float | None = None
    k: int | None = None
    block: int = 64

    name = "block_topk"
    number = 3

    def __post_init__(self) -> None:
        check_ratio_or_k(self)
        check_integer(self, "block", minimum=1)

    @classmethod
    def from_option(cls, text: str) -> BlockTopK:
        """Build an instance from block_topk:RATIO."""
        return cls(ratio=parse_number(cls.name, cls.option, text))

    @classmethod
    def examples(cls) -> tuple[Sparsifier, ...]:
        """Return instances that the test rosters run."""
        return (cls(0.05, block=8), cls(k=3, block=7))

    @property
    def biased(self) -> bool:
        """True: small blocks are never selected."""
        return True

    def count(self, size: int) -> int | None:
        """Return the number of blocks; None if the last block is shorter."""
        if size % self.block:
            return None
        return count_entries(self.ratio, self.k, size // self.block)

    def select_from(self, source: Source, seed: int, state: NDArray[np.float64]) -> Stream:
        """Return the blocks of largest norm."""
        del seed, state
        size, block = source.size, self.block
        squares = source.block_squares(block)
        chosen, _ = kernels.top_k(squares, count_entries(self.ratio, self.k, squares.size))
        if size % block == 0:
            return Stream.unchecked(size, chosen, source.gather(chosen, block), block)
        positions = np.add.outer(chosen.astype(np.int64) * block, np.arange(block)).reshape(
            -1
        )
        indices = positions[positions < size].astype(np.uint32)
        return Stream.unchecked(size, indices, source.gather(indices))
