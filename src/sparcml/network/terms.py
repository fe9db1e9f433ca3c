"""A declared cost as four numbers, from which every network's seconds follow.

Seconds are linear in what a network charges, so that one look at the rounds serves all
rates and latencies: a sweep of them, or a page where one can try them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from ..collectives import ALLREDUCES, Network, Workload

# A network whose costs are vectors, one axis each, so that one look at all messages gives
# three terms: long vectors travel in thousands of pieces.
AXES: Any = dict(zip(("latency", "overhead", "seconds_per_byte"), np.eye(3), strict=True))
LINKS: Any = Network(
    **AXES, seconds_per_encoded=0.0, seconds_per_merged=0.0, seconds_per_written=0.0
)


@dataclass(frozen=True)
class CostTerms:
    """What a sum takes on a rank.

    Attributes:
        rounds: Latencies that follow each other.
        messages: Messages that are on their way together with another one.
        nbytes: Bytes that follow each other on a link.
        work: Seconds of coding, merging and writing.
    """

    rounds: float = 0.0
    messages: float = 0.0
    nbytes: float = 0.0
    work: float = 0.0

    def __add__(self, other: CostTerms) -> CostTerms:
        return CostTerms(
            self.rounds + other.rounds,
            self.messages + other.messages,
            self.nbytes + other.nbytes,
            self.work + other.work,
        )

    def seconds(self, network: Network) -> float:
        """On a network with these costs of a message and a byte."""
        return (
            network.latency * self.rounds
            + network.overhead * self.messages
            + network.seconds_per_byte * self.nbytes
            + self.work
        )


def terms(
    collective: str, ranks: int, values: int, sent: int, each: float, network: Network
) -> CostTerms:
    """A sum of `values`, of which each rank brings `sent`, at `each` bytes.

    Of the network only the processor's costs count.
    """
    if ranks == 1 or not values:
        return CostTerms()
    processor = replace(network, latency=0.0, overhead=0.0, seconds_per_byte=0.0)
    return _terms(collective, ranks, values, sent, each, processor)


@lru_cache(maxsize=4096)
def _terms(
    collective: str, ranks: int, values: int, sent: int, each: float, processor: Network
) -> CostTerms:
    # All ranks bring as much, so that they differ by rounding alone, and the first has the
    # largest range.
    workload = Workload(values, each, (sent,) * ranks)
    rounds = ALLREDUCES[collective].rounds(0, workload)
    link = np.zeros(3) + LINKS.seconds(rounds, each)  # without rounds it is a plain 0
    latencies, messages, nbytes = map(float, link)
    return CostTerms(latencies, messages, nbytes, processor.seconds(rounds, each))
