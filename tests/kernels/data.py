"""Values that are hard to code, and what must come out of coding them."""

from typing import Any

import numpy as np

MOST = np.finfo(np.float32).max
SPECIAL = np.array([0, -0.0, np.nan, 1e-45, -1e-44, 1e-38, 3e38, -MOST, 0.5], np.float32)
_known: dict[Any, Any] = {}
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


def once(reference, *arguments):
    """What the slow reference gives: computed once, and asked of every instruction set."""
    key = (reference, *map(_key, arguments))
    if key not in _known:
        _known[key] = reference(*arguments)
    return _known[key]


def _key(argument):
    if isinstance(argument, np.ndarray):
        return argument.dtype.str, argument.shape, argument.tobytes()
    return repr(argument)  # -0.0 is not 0.0 here


def same(got, want):
    """Bit for bit."""
    np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))
