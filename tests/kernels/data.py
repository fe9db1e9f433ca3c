"""Values that are hard to code."""

import numpy as np

MOST = np.finfo(np.float32).max
SPECIAL = np.array([0, -0.0, np.nan, 1e-45, -1e-44, 1e-38, 3e38, -MOST, 0.5], np.float32)
KINDS = ["normal", "tiny", "huge", "special", "infinite", "zero"]


def values_of(kind, size, seed=0):
    """So many of a kind."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(size).astype(np.float32)
    if kind == "tiny":
        values *= np.float32(1e-42)
    if kind == "huge":
        values *= np.float32(1e37)
    if kind == "special":
        values = rng.choice(SPECIAL, size)
    if kind == "infinite" and size:
        values[rng.integers(0, size, 3)] = np.inf, -np.inf, np.nan
    if kind == "zero":
        values[:] = 0
    return values


def same(got, want):
    """Bit for bit."""
    np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))
