"""Sums of sparse and dense vectors: typed entrances to the compiled loops.

A sparse vector is strictly ascending uint32 indices and their values; with `block` > 1 each
index stands for that many consecutive values. Indices are the caller's promise, except
where a loop writes at them: `scatter` and `place` check. A NaN result is always the
canonical one.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sparcml.kernels import _core

Float = TypeVar("Float", np.float32, np.float64)
Indices = NDArray[np.uint32]
Values = NDArray[Float]
Entries = tuple[Indices, Values[Float]]

OPS = {"sum": 0, "min": 1, "max": 2, "prod": 3}


def combine_dense(
    op: str, a: Values[Float], b: Values[Float], out: Values[Float] | None = None
) -> Values[Float]:
    """a op b, into `out` if given (which may be a or b)."""
    if out is None:
        out = np.empty_like(a)
    _core.combine_dense(OPS[op], a, b, out)
    return out


def merge(
    op: str,
    ai: Indices,
    av: Values[Float],
    bi: Indices,
    bv: Values[Float],
    block: int = 1,
) -> Entries[Float]:
    """The entries of a and b together; where both have one, a's op b's."""
    indices = np.empty(ai.size + bi.size, np.uint32)
    values = np.empty(av.size + bv.size, av.dtype)
    nnz = _core.merge(OPS[op], ai, av, bi, bv, block, indices, values)
    return indices[:nnz], values[: nnz * block]
