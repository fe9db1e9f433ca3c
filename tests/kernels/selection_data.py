"""Vectors on which selections go wrong."""

import numpy as np
from numpy.typing import DTypeLike

from .reduction_data import Array, values

SIZES = (0, 1, 2, 63, 64, 65, 127, 128, 500, 512, 513, 1000, 4097)
SAMPLED = 9000  # from about here on a sample decides what is a candidate


def hard(rng: np.random.Generator, size: int, dtype: DTypeLike) -> dict[str, Array]:
    """The usual case, and those that a sample or a comparison of floats gets wrong."""
    plain = rng.standard_normal(size)
    tiny = float(np.finfo(dtype).smallest_subnormal)
    sparse = np.where(rng.random(size) < 0.001, plain, 0.0)
    period = np.where(np.arange(size) % 16 == 0, 100 + plain, plain)
    cases = {
        "normal": plain,
        "heavy-tailed": plain**7,
        "constant": np.full(size, -1.5),
        "zero": np.zeros(size),
        "signed zero": np.where(plain < 0, -0.0, 0.0),
        "mostly zero": sparse,
        "two values": np.where(plain < 0, 1.0, -2.0),
        "few values": np.round(plain),
        "ascending": np.sort(np.abs(plain)),
        "descending": -np.sort(-np.abs(plain)),
        "denormal": np.round(10 * plain) * tiny,
        "periodic": period,
        "close": 1 + np.arange(size) * 1e-7,
        "infinite": np.where(plain < 0, -np.inf, plain),
    }
    arrays = {name: x.astype(dtype) for name, x in cases.items()}
    arrays["NaN"] = np.full(size, np.nan, dtype)
    arrays["odd"] = values(rng, size, dtype, 0.5)
    return arrays


def sampled_places(size: int, attempt: int) -> Array:
    """Where the kernel samples (sampled_bound in exact.h): an adversary's knowledge."""
    count = min(max(1 << 14, size >> 10) << 2 * attempt, size // 4)
    i = np.arange(count, dtype=np.uint64)
    u = np.uint64
    with np.errstate(over="ignore"):
        x = (i + u(attempt << 32) + u(1)) * u(0x9E3779B97F4A7C15)
        x = (x ^ (x >> u(30))) * u(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> u(27))) * u(0x94D049BB133111EB)
    stretch = u(size // count)
    return (i * stretch + ((x >> u(32)) * stretch >> u(32))).astype(np.int64)


def adversaries(
    rng: np.random.Generator, size: int, dtype: DTypeLike, attempts: int
) -> dict[str, Array]:
    """Vectors that lie at the very places where the kernel samples."""
    places = np.concatenate([sampled_places(size, attempt) for attempt in range(attempts)])
    plain = np.abs(rng.standard_normal(size))
    cases = {
        "too high": plain.copy(),
        "too low": np.sort(plain),
        "too low, close": 1 + np.sort(plain) / 1e3,
    }
    for name, x in cases.items():
        x[places] = 100 if name == "too high" else 0
    return {name: x.astype(dtype) for name, x in cases.items()}
