"""What algorithms really take, where that was measured: their declared parts, weighed.

A declared cost has three parts: waiting for messages, bytes on links, and work. Engines
handle patterns of messages differently well, ranks may share processors, and some work is
not declared; so a measurement gives each part of each algorithm a weight of its own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from .workload import Network


class Calibration(NamedTuple):
    """How one algorithm differs from what it declares.

    Attributes:
        algorithm: Its name.
        start: Seconds that a call takes however little it does.
        waiting: Weight of its messages.
        bytes: Weight of its bytes.
        work: Weight of its coding and adding.
    """

    algorithm: str
    start: float
    waiting: float
    bytes: float
    work: float


def calibrated_seconds(
    network: Network, algorithm: str, nbytes: float, declared: Callable[[Network], float]
) -> float:
    """Seconds of an algorithm: as measured on this network, or as declared.

    Args:
        network: What things cost.
        algorithm: Its name.
        nbytes: What the busiest rank sends.
        declared: Seconds by its declared cost, on any network.
    """
    for tuned in network.calibration:
        if tuned.algorithm == algorithm:
            parts = parts_of(network, nbytes, declared)
            return tuned.start + sum(w * p for w, p in zip(tuned[2:], parts, strict=True))
    return declared(network)


def parts_of(
    network: Network, nbytes: float, declared: Callable[[Network], float]
) -> tuple[float, float, float]:
    """Seconds of waiting, on links, and of work: costs are linear in what a network takes.

    What a rested link lets pass at once takes no time there.
    """
    idle = replace(
        network, seconds_per_encoded=0.0, seconds_per_merged=0.0, seconds_per_written=0.0
    )
    waiting = declared(replace(idle, seconds_per_byte=0.0))
    links = declared(replace(idle, latency=0.0, overhead=0.0))
    work = declared(replace(network, latency=0.0, overhead=0.0, seconds_per_byte=0.0))
    if nbytes:
        links *= max(0.0, 1 - network.burst / nbytes)
    return waiting, links, work
