"""What a quantizer does to a vector: bits, length and error, measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from .base import Quantizer


class Distortion(NamedTuple):
    """Means over seeds.

    Attributes:
        bits: Of the code, a value; all bytes count.
        ratio: How many times fewer that is than the 32 of float32.
        energy: ||Q(v)||^2 / ||v||^2.
        error: ||Q(v) - v||^2 / ||v||^2.
        bias: ||mean of Q(v) - v||^2 / ||v||^2; with n seeds, noise leaves error / n.
    """

    bits: float
    ratio: float
    energy: float
    error: float
    bias: float


def distortion(
    quantizer: Quantizer, vector: NDArray[np.float32], seeds: Iterable[int] = range(8)
) -> Distortion:
    """Code a vector once a seed, and look at what comes back."""
    v = vector.astype(np.float64)
    nbytes, lengths, errors, total = [], [], [], np.zeros_like(v)
    for seed in seeds:
        code = quantizer.encode(vector, seed)
        decoded = quantizer.decode(code).astype(np.float64)
        nbytes.append(code.nbytes)
        lengths.append(np.square(decoded).sum())
        errors.append(np.square(decoded - v).sum())
        total += decoded
    bits, whole = 8 * float(np.mean(nbytes)) / v.size, float(np.square(v).sum())
    bias = np.square(total / len(nbytes) - v).sum()
    return Distortion(
        bits,
        32 / bits,
        float(np.mean(lengths)) / whole,
        float(np.mean(errors)) / whole,
        float(bias) / whole,
    )
