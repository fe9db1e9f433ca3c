"""Measure how fast this machine encodes, merges and adds while all ranks do the same."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from .. import wire
from ..stream import Stream, add
from .least_squares import Fit, least_squares

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..transport import Transport

COUNTS = (1 << 14, 1 << 16, 1 << 18)  # entries
REPEATS = 7
SPREAD = 100  # size of a vector per nonzero


def measure_compute(transport: Transport) -> dict[str, Fit]:
    """Fit the costs (per call, per entry) of each type of work."""
    try:
        return {name: _fit(transport, name, WORK[name]) for name in WORK}
    finally:
        _sparse.cache_clear()  # free the vectors
        _dense.cache_clear()


def _fit(transport: Transport, name: str, work: Callable[[int], None]) -> Fit:
    seconds = [_median(transport, name, partial(work, count), count) for count in COUNTS]
    return least_squares([(1, count) for count in COUNTS], seconds)


def _median(transport: Transport, name: str, work: Callable[[], None], count: int) -> float:
    if not transport.is_simulated:
        work()  # warm-up: creates the vectors and touches the memory
    times = []
    for _ in range(REPEATS):
        start = transport.now()
        if transport.is_simulated:  # the virtual clock advances by the declared cost
            transport.charge(**{name: count})
        else:
            work()
        times.append(transport.now() - start)
    return max(float(np.median(times)), 1e-9)


def _encode(count: int) -> None:
    message, _ = wire.encode(_sparse(count, 0), wire.Tag(0, 0, 0))
    wire.decode(message)


def _merge(count: int) -> None:
    add(_sparse(count // 2, 0), _sparse(count // 2, 1), "sum")


def _write(count: int) -> None:
    add(_dense(count), _dense(count), "sum")


@cache
def _sparse(count: int, seed: int) -> Stream:
    steps = np.random.default_rng(seed).integers(1, 2 * SPREAD, count)
    indices = np.cumsum(steps).astype(np.uint32)
    return Stream(2 * SPREAD * count, indices, np.ones(count, np.float32))


@cache
def _dense(count: int) -> Stream:
    return Stream.from_dense(np.ones(count, np.float32))


WORK: dict[str, Callable[[int], None]] = {
    "encoded": _encode,
    "merged": _merge,
    "written": _write,
}
