"""Calibrated cost: the declared cost of an algorithm, corrected by measurements.

A declared cost has three parts: latency and overhead, bytes on links, and work. Engines
handle some message patterns better than others, ranks may share cores, and some work is not
declared. `sparcml probe` therefore measures a weight for each part of each algorithm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .network import COMPUTE_COSTS, LINK_COSTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from .network import Network


def calibrated_seconds(
    network: Network, algorithm: str, nbytes: float, declared: Callable[[Network], float]
) -> float:
    """Return the calibrated seconds of an algorithm, or the declared ones if uncalibrated.

    Args:
        network: Costs and calibrations.
        algorithm: Name of the algorithm.
        nbytes: Bytes that the busiest rank sends.
        declared: Function that returns the declared seconds on a network.
    """
    for calibration in network.calibration:
        if calibration.algorithm == algorithm:
            parts = cost_parts(network, nbytes, declared)
            weighted = zip(calibration[2:], parts, strict=True)
            return calibration.start + sum(weight * part for weight, part in weighted)
    return declared(network)


def cost_parts(
    network: Network, nbytes: float, declared: Callable[[Network], float]
) -> tuple[float, float, float]:
    """Return the declared seconds of waiting, of bytes on links, and of work.

    Bytes within the burst of an idle link take no time.
    """
    waiting = declared(network.without((*COMPUTE_COSTS, "seconds_per_byte")))
    links = declared(network.without((*COMPUTE_COSTS, "latency", "overhead")))
    work = declared(network.without(LINK_COSTS))
    if nbytes:
        links *= max(0.0, 1 - network.burst / nbytes)
    return waiting, links, work
