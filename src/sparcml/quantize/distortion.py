"""Distortion of a quantizer: measured bits, energy, error and bias."""

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
        bits: Bits of the code per value, all bytes included.
        ratio: Compression ratio to the 32 bits of float32.
        energy: ||Q(v)||^2 / ||v||^2.
        error: ||Q(v) - v||^2 / ||v||^2.
        bias: ||mean of Q(v) - v||^2 / ||v||^2; with n seeds, noise contributes error / n.
    """

    bits: float
    ratio: float
    energy: float
    error: float
    bias: float


def distortion(
    quantizer: Quantizer, vector: NDArray[np.float32], seeds: Iterable[int] = range(8)
) -> Distortion:
    """Measure the distortion of a vector, encoded once per seed."""
    v = vector.astype(np.float64)
    nbytes, energies, errors, total = [], [], [], np.zeros_like(v)
    for seed in seeds:
        code = quantizer.encode(vector, seed)
        decoded = quantizer.decode(code).astype(np.float64)
        nbytes.append(code.nbytes)
        energies.append(np.square(decoded).sum())
        errors.append(np.square(decoded - v).sum())
        total += decoded
    bits, squared_norm = 8 * float(np.mean(nbytes)) / v.size, float(np.square(v).sum())
    bias = np.square(total / len(nbytes) - v).sum()
    return Distortion(
        bits,
        32 / bits,
        float(np.mean(energies)) / squared_norm,
        float(np.mean(errors)) / squared_norm,
        float(bias) / squared_norm,
    )
