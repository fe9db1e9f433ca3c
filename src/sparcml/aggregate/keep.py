"""gTop-k's rule: of the sums only the largest count, the rest goes back where it came from.

The paper drops sums on the way, in a tree, and so may miss some of the largest; here all are
summed first, and every rank drops the same ones.

Reference: Shi et al.: A Distributed Synchronous SGD Algorithm with Global Top-k
Sparsification for Low Bandwidth Networks, ICDCS 2019.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import kernels
from ..stream.ranges import restrict_to, take

if TYPE_CHECKING:
    from ..sparsify import TopK
    from ..stream import Stream
    from .reduce import Pair


def keep_largest(keep: TopK, total: Stream, seen: Stream) -> Pair:
    """The largest sums, and this rank's part of them; of blocks, those of largest norm."""
    stored, k = total.raw_values, keep.count(total.blocks)
    if total.nnz <= k:
        return total, seen
    if total.block > 1:
        stored = kernels.block_squared_norms(stored, total.block)
    places, _ = kernels.top_k(stored, k)
    kept = take(total, places.astype(np.intp))
    return kept, restrict_to(seen, kept.indices)
