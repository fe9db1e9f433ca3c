"""Blocks: the k blocks of largest norm, such as rows of a matrix.

An index stands for a whole block, so indices cost next to nothing. Of all blocks' squared
norms the k largest are kept: ||v - BlockTopK(v)||^2 <= (1 - k/blocks) ||v||^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .. import kernels
from ..stream import Stream
from ..validation import check_integer
from .base import Sparsifier, parse_number
from .ratio import check_ratio_or_k, count_entries

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .vector import Source


@dataclass(frozen=True)
class BlockTopK(Sparsifier):
    """The blocks of consecutive values with the largest norm; of equal ones the first.

    The stream's entries are blocks. If the vector is no whole number of blocks, its last
    block is shorter, and the entries are single values. A block with NaN counts as largest.

    Args:
        ratio: Share of the blocks; their number * ratio rounded half up, at least one.
        k: The number of blocks instead.
        block: Values of a block.
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
        """Yes: small blocks never come."""
        return True

    def count(self, size: int) -> int | None:
        """Blocks; not known if the last one is shorter and entries are single values."""
        if size % self.block:
            return None
        return count_entries(self.ratio, self.k, size // self.block)

    def select_from(self, source: Source, seed: int, state: NDArray[np.float64]) -> Stream:
        """The largest."""
        del seed, state
        size, block = source.size, self.block
        squares = source.block_squares(block)
        chosen, _ = kernels.top_k(squares, count_entries(self.ratio, self.k, squares.size))
        if size % block == 0:
            return Stream.unchecked(size, chosen, source.gather(chosen, block), block)
        places = np.add.outer(chosen.astype(np.int64) * block, np.arange(block)).reshape(-1)
        indices = places[places < size].astype(np.uint32)
        return Stream.unchecked(size, indices, source.gather(indices))
