"""Steps of decentralized methods over dense vectors, each in one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from .. import buffer_pool
from . import _core

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Float = TypeVar("Float", np.float32, np.float64)


def weighted_sum(
    weights: Sequence[float],
    vectors: Sequence[NDArray[Float]],
    *,
    rate: float = 0.0,
    g: NDArray[Float] | None = None,
    base: NDArray[Float] | None = None,
) -> NDArray[Float]:
    """Return the sum of weights[k] vectors[k], minus rate * g, minus base.

    The sum is formed in float64 in the given order and rounded once; a NaN is the canonical one.
    """
    return checked_sum(weights, vectors, rate=rate, g=g, base=base)[0]


def checked_sum(
    weights: Sequence[float],
    vectors: Sequence[NDArray[Float]],
    *,
    rate: float = 0.0,
    g: NDArray[Float] | None = None,
    base: NDArray[Float] | None = None,
) -> tuple[NDArray[Float], bool]:
    """Return the result of `weighted_sum`, and whether all of it is finite."""
    out = buffer_pool.empty(vectors[0].size, vectors[0].dtype)
    finite = _core.weighted_sum(list(weights), list(vectors), rate, g, base, out)
    return out, finite


def add_differences(
    x: NDArray[Float],
    own: NDArray[Float],
    weights: Sequence[float],
    vectors: Sequence[NDArray[Float]],
    *,
    gamma: float = 1.0,
    rate: float = 0.0,
    g: NDArray[Float] | None = None,
) -> NDArray[Float]:
    """Return x - rate * g, plus gamma times the sum of weights[k] (vectors[k] - own).

    The first difference is rounded; the sum is formed in float64 and rounded once.
    """
    out = buffer_pool.empty(x.size, x.dtype)
    _core.add_differences(list(weights), list(vectors), gamma, own, x, rate, g, out)
    return out


def add_differences_at(
    indices: NDArray[np.uint32],
    block: int,
    x: NDArray[Float],
    own: NDArray[Float],
    weights: Sequence[float],
    vectors: Sequence[NDArray[Float]],
    out: NDArray[Float],
    *,
    gamma: float = 1.0,
    rate: float = 0.0,
    g: NDArray[Float] | None = None,
) -> None:
    """Write the results of `add_differences` to the blocks of `out` at these indices."""
    _core.add_differences_at(
        indices, block, list(weights), list(vectors), gamma, own, x, rate, g, out
    )
