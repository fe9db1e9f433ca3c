"""Steps of decentralized methods over dense vectors, defined in NumPy."""

from collections.abc import Sequence

import numpy as np

from sparcml.kernels.reduction import Float, Values


def weighted_sum(
    weights: Sequence[float],
    vectors: Sequence[Values[Float]],
    *,
    rate: float = 0.0,
    g: Values[Float] | None = None,
    base: Values[Float] | None = None,
) -> Values[Float]:
    """Return the weighted sum in float64, rounded, minus rate * g, minus base."""
    dtype = vectors[0].dtype
    with np.errstate(all="ignore"):
        total = weights[0] * vectors[0].astype(np.float64)
        for weight, vector in zip(weights[1:], vectors[1:], strict=True):
            total += weight * vector.astype(np.float64)
        out = total.astype(dtype)
        out[np.isnan(out)] = np.nan
        if g is not None:
            out -= dtype.type(rate) * g
        if base is not None:
            out -= base
    return out


def add_differences(
    x: Values[Float],
    own: Values[Float],
    weights: Sequence[float],
    vectors: Sequence[Values[Float]],
    *,
    gamma: float = 1.0,
    rate: float = 0.0,
    g: Values[Float] | None = None,
) -> Values[Float]:
    """Return x - rate * g, rounded, plus gamma times the weighted sum of vectors - own."""
    with np.errstate(all="ignore"):
        h = x if g is None else x - x.dtype.type(rate) * g
        total = np.zeros(x.size)
        for weight, vector in zip(weights, vectors, strict=True):
            total += weight * (vector.astype(np.float64) - own.astype(np.float64))
        return (h + gamma * total).astype(x.dtype)
