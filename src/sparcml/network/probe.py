"""Measure: how long messages take between these ranks, and how fast this machine is.

First two ranks alone: a message goes back and forth. Then all at once, as in collectives:
each sends to the rank half the way round, one or several messages of several sizes. Every
sample is a median; costs are fitted to all of them. Then whole sums: see `tune`.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from math import gcd
from typing import TYPE_CHECKING, Any

import numpy as np

from ..collectives import Network
from ..transport.bootstrap import broadcast, gather_hosts
from .least_squares import Fit, least_squares
from .measurement import Measurement, from_json
from .probe_algorithms import Sample, samples, tune
from .probe_compute import speeds

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..transport import Message, Nodes, Transport

SIZES = (0, 1 << 10, 1 << 13, 1 << 16, 1 << 18, 1 << 20)  # bytes
LONG = 1 << 18
SEVERAL = (1, 2, 4, 8)  # messages at the same time; of the long ones, one
BUDGET = 0.06  # seconds for a sample
FEWEST, MOST = 3, 50  # times that a sample is taken
LONGEST_TURN = 8  # steps


def probe(
    transport: Transport,
    *,
    quick: bool = False,
    progress: Callable[[str], object] = lambda _: None,
) -> Measurement:
    """Measure the network of these ranks; all call it, and get what rank 0 has found.

    Args:
        transport: Between the ranks, while nothing else is under way.
        quick: Leave out the sums, which take most of the time.
        progress: Is told what is measured next.
    """
    if transport.size < 2:
        raise ValueError("probe: a network has at least 2 ranks, this job has 1")
    buffer = np.zeros(max(SIZES), np.uint8)
    progress("messages")
    alone = _alone(transport, buffer)
    together = _together(transport, buffer)
    transport.barrier()
    progress("kernels")
    work = speeds(transport)
    places = gather_hosts(transport)
    found = _told(transport, _measurement(transport, alone, together, work, places))
    if quick or transport.is_simulated:  # in a simulation, sums take what they declare
        return found
    sums = samples(transport, found.network, progress)
    return _told(transport, _tuned(found, sums, transport.nodes))


def _told(transport: Transport, found: Measurement) -> Measurement:
    """Rank 0's, on every rank."""
    told = found.to_json().encode() if transport.rank == 0 else b""
    return from_json(broadcast(transport, told).decode())


def _tuned(found: Measurement, sums: list[Sample], nodes: Nodes) -> Measurement:
    tuning = tune(sums, found.network, nodes)
    network = replace(found.network, burst=tuning.burst, calibration=tuning.calibrations)
    return replace(found, network=network, sums=tuning.misfits)


def _measurement(
    transport: Transport,
    alone: Fit,
    together: Fit,
    work: dict[str, Fit],
    places: tuple[str, ...],
) -> Measurement:
    names = ("latency", "overhead", "seconds_per_byte")
    costs: dict[str, Any] = dict(zip(names, together.costs, strict=True))
    errors = dict(zip(names, together.errors, strict=True))
    costs |= {f"seconds_per_{name}": fit.costs[1] for name, fit in work.items()}
    errors |= {f"seconds_per_{name}": fit.errors[1] for name, fit in work.items()}
    return Measurement(
        Network(**costs),
        errors,
        together.misfit,
        {
            "latency": alone.costs[0],
            "seconds_per_byte": alone.costs[1],
            "misfit": alone.misfit,
        },
        transport.engine,
        places,
        transport.size,
        time.time(),
    )


def _alone(transport: Transport, buffer: Message) -> Fit:
    """One pair: the first and the last rank, who are the likeliest to be far apart."""
    seconds = [
        _sample(transport, partial(_ping_pong, transport, buffer[:nbytes])) / 2
        for nbytes in SIZES
    ]
    return least_squares([(1, nbytes) for nbytes in SIZES], seconds)


def _together(transport: Transport, buffer: Message) -> Fit:
    """All ranks send at once."""
    counts, seconds = [], []
    turn = _turn(transport.size)
    for nbytes in SIZES:
        for messages in SEVERAL if nbytes < LONG else (1,):
            step = partial(_shift, transport, buffer[:nbytes], messages)
            counts.append((1, messages - 1, messages * nbytes))
            seconds.append(_sample(transport, step, turn) / turn)
    return least_squares(counts, seconds)


def _turn(ranks: int) -> int:
    """Steps after which a rank waits for its own delay: what it was late by cancels."""
    return min(ranks // gcd(ranks, ranks // 2), LONGEST_TURN)


def _ping_pong(transport: Transport, message: Message) -> None:
    last = transport.size - 1
    if transport.rank == 0:
        transport.send(last, message)
        transport.receive(last)
    elif transport.rank == last:
        transport.receive(0)
        transport.send(0, message)


def _shift(transport: Transport, message: Message, messages: int) -> None:
    """To the rank half the way round, which is another machine where there are several."""
    size, far = transport.size, transport.size // 2
    to, source = (transport.rank + far) % size, (transport.rank - far) % size
    arriving = [transport.irecv(source) for _ in range(messages)]
    leaving = [transport.isend(to, message) for _ in range(messages)]
    for pending in (*arriving, *leaving):
        pending.wait()


def _sample(transport: Transport, step: Callable[[], None], steps: int = 1) -> float:
    """The median time of so many steps; rank 0 says how often they are repeated."""
    transport.barrier()
    first = _times(transport, step, steps, 2)[-1]
    often = int(min(max(BUDGET / max(first, 1e-9), FEWEST), MOST))
    often = len(broadcast(transport, bytes(often)))
    times = _times(transport, step, steps, 1 + often)
    return max(float(np.median(times[1:])), 1e-9)


def _times(
    transport: Transport, step: Callable[[], None], steps: int, often: int
) -> list[float]:
    stamps = [transport.now()]
    for _ in range(often):
        for _ in range(steps):
            step()
        stamps.append(transport.now())
    return np.diff(stamps).tolist()
