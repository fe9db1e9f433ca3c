"""Vectors to sparsify."""

import numpy as np

SIZES = (0, 1, 7, 8, 63, 64, 65, 512, 1000, 20_000)


def gradient(seed: int, size: int, dtype=np.float32):
    """Return Gaussian values."""
    return np.random.default_rng(seed).standard_normal(size).astype(dtype)


def norm2(x) -> float:
    """Return the squared norm."""
    return float(np.sum(np.square(np.asarray(x, np.float64))))
