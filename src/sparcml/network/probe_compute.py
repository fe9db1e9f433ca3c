"""How fast this machine adds and codes, while all ranks do the same."""

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
SPREAD = 100  # places in a vector for each sparse entry


def speeds(transport: Transport) -> dict[str, Fit]:
    """Seconds for each entry, as (cost of the call, cost of an entry), by kind of work."""
    try:
        return {name: _fit(transport, name, WORK[name]) for name in WORK}
    finally:
        _sparse.cache_clear()  # vectors that nobody needs again
        _dense.cache_clear()


def _fit(transport: Transport, name: str, work: Callable[[int], None]) -> Fit:
    seconds = [_median(transport, name, partial(work, count), count) for count in COUNTS]
    return least_squares([(1, count) for count in COUNTS], seconds)


def _median(transport: Transport, name: str, work: Callable[[], None], count: int) -> float:
    if not transport.is_simulated:
        work()  # what it needs is made, and memory is there
    taken = []
    for _ in range(REPEATS):
        start = transport.now()
        if transport.is_simulated:  # simulated: it takes what it is said to take
            transport.charge(**{"encoded" if name == "coded" else name: count})
        else:
            work()
        taken.append(transport.now() - start)
    return max(float(np.median(taken)), 1e-9)


def _code(count: int) -> None:
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
    "encoded": _code,
    "merged": _merge,
    "written": _write,
}
