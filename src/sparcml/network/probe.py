"""Measure the network between the ranks, the speed of the machine, and all allreduces.

First one pair of ranks exchanges messages while the others are idle. Then all ranks send at
once, as in collectives: each to the rank half the world size away, one or several messages of
several sizes. Every sample is a median, and the costs are fitted to all samples. Finally
`probe_algorithms` measures allreduces.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache, partial
from math import gcd
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import wire
from ..costs import Network
from ..stream import Stream, add
from ..transport.bootstrap import broadcast, gather_hosts
from .least_squares import Fit, least_squares
from .probe_algorithms import calibrate, measure_allreduces
from .store import Measurement, from_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..transport import Message, Transport


SIZES = (0, 1 << 10, 1 << 13, 1 << 16, 1 << 18, 1 << 20)  # bytes
LONG = 1 << 18
SIMULTANEOUS = (1, 2, 4, 8)  # messages at once; long messages are sent one at a time
BUDGET = 0.06  # seconds per sample
MIN_RUNS, MAX_RUNS = 3, 50  # per sample
MAX_CYCLE = 8  # shifts
COUNTS = (1 << 14, 1 << 16, 1 << 18)  # entries
REPEATS = 7
SPREAD = 100  # size of a vector per nonzero


def probe(
    transport: Transport,
    *,
    quick: bool = False,
    progress: Callable[[str], object] = lambda _: None,
) -> Measurement:
    """Measure the network of these ranks and return the result of rank 0. Collective.

    Args:
        transport: The transport, while it is not in use otherwise.
        quick: Skip the allreduces, which take most of the time.
        progress: Called with a description of each part.
    """
    if transport.size < 2:
        raise ValueError("probe: a network has at least 2 ranks, this job has 1")
    buffer = np.zeros(max(SIZES), np.uint8)
    progress("messages")
    exclusive = _measure_pair(transport, buffer)
    simultaneous = _measure_all(transport, buffer)
    transport.barrier()
    progress("kernels")
    work = measure_compute(transport)
    machines = gather_hosts(transport)
    measurement = _broadcast(
        transport, _measurement(transport, exclusive, simultaneous, work, machines)
    )
    if quick or transport.is_simulated:  # a simulated allreduce takes its declared time
        return measurement
    samples = measure_allreduces(transport, measurement.network, progress)
    fit = calibrate(samples, measurement.network, transport.nodes)
    network = replace(measurement.network, burst=fit.burst, calibration=fit.calibrations)
    measurement = replace(measurement, network=network, allreduce_misfits=fit.misfits)
    return _broadcast(transport, measurement)


def _broadcast(transport: Transport, measurement: Measurement) -> Measurement:
    """Return the measurement of rank 0. Collective."""
    text = measurement.to_json().encode() if transport.rank == 0 else b""
    return from_json(broadcast(transport, text).decode())


def _measurement(
    transport: Transport,
    exclusive: Fit,
    simultaneous: Fit,
    work: dict[str, Fit],
    machines: tuple[str, ...],
) -> Measurement:
    names = ("latency", "overhead", "seconds_per_byte")
    costs: dict[str, Any] = dict(zip(names, simultaneous.costs, strict=True))
    errors = dict(zip(names, simultaneous.errors, strict=True))
    costs |= {f"seconds_per_{name}": fit.costs[1] for name, fit in work.items()}
    errors |= {f"seconds_per_{name}": fit.errors[1] for name, fit in work.items()}
    latency, seconds_per_byte = exclusive.costs
    return Measurement(
        Network(**costs),
        errors,
        simultaneous.misfit,
        {
            "latency": latency,
            "seconds_per_byte": seconds_per_byte,
            "misfit": exclusive.misfit,
        },
        transport.engine,
        machines,
        transport.size,
        time.time(),
    )


def _measure_pair(transport: Transport, buffer: Message) -> Fit:
    """Fit the costs between the first and the last rank, most likely on different nodes."""
    seconds = [
        _sample(transport, partial(_ping_pong, transport, buffer[:nbytes])) / 2
        for nbytes in SIZES
    ]
    return least_squares([(1, nbytes) for nbytes in SIZES], seconds)


def _measure_all(transport: Transport, buffer: Message) -> Fit:
    """Fit the costs while all ranks send at once."""
    counts, seconds = [], []
    cycle = _cycle(transport.size)
    for nbytes in SIZES:
        for messages in SIMULTANEOUS if nbytes < LONG else (1,):
            shift = partial(_shift, transport, buffer[:nbytes], messages)
            counts.append((1, messages - 1, messages * nbytes))
            seconds.append(_sample(transport, shift, cycle) / cycle)
    return least_squares(counts, seconds)


def _cycle(ranks: int) -> int:
    """Return the shifts after which a rank waits for itself, so that its delays cancel."""
    return min(ranks // gcd(ranks, ranks // 2), MAX_CYCLE)


def _ping_pong(transport: Transport, message: Message) -> None:
    last = transport.size - 1
    if transport.rank == 0:
        transport.send(last, message)
        transport.receive(last)
    elif transport.rank == last:
        transport.receive(0)
        transport.send(0, message)


def _shift(transport: Transport, message: Message, messages: int) -> None:
    """Send to the rank half the world size away, on another node if there are several."""
    size, half = transport.size, transport.size // 2
    to, source = (transport.rank + half) % size, (transport.rank - half) % size
    receives = [transport.irecv(source) for _ in range(messages)]
    sends = [transport.isend(to, message) for _ in range(messages)]
    for pending in (*receives, *sends):
        pending.wait()


def _sample(transport: Transport, step: Callable[[], None], steps: int = 1) -> float:
    """Return the median time of `steps` steps; rank 0 sets the number of runs."""
    transport.barrier()
    first = _run_times(transport, step, steps, 2)[-1]
    runs = int(min(max(BUDGET / max(first, 1e-9), MIN_RUNS), MAX_RUNS))
    runs = len(broadcast(transport, bytes(runs)))
    times = _run_times(transport, step, steps, 1 + runs)
    return max(float(np.median(times[1:])), 1e-9)


def _run_times(
    transport: Transport, step: Callable[[], None], steps: int, runs: int
) -> list[float]:
    stamps = [transport.now()]
    for _ in range(runs):
        for _ in range(steps):
            step()
        stamps.append(transport.now())
    return np.diff(stamps).tolist()


def measure_compute(transport: Transport) -> dict[str, Fit]:
    """Fit the costs (per call, per entry) of each type of work, which all ranks do at once."""
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
