"""Local SGD: the mean of the models after every H steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..validation import check_integer
from .aggregated_round import AggregatedRound
from .outer import Outer


@dataclass(frozen=True)
class LocalSGD(AggregatedRound):
    """Model averaging.

        x <- mean of x_m          after every `sync_every` inner steps

    One step per round with SGD is synchronous SGD. It is computed as shared - mean(shared - x_m),
    so that changes can be compressed; rounding makes it equal to the mean of the models up to a
    few units in the last place. On a single rank it changes nothing.

    Post-local SGD: with `warm_up` the models are averaged in every step first, usually until the
    learning rate falls for the first time.

    References: McDonald, Hall, Mann 2010; Stich: Local SGD Converges Fast and Communicates
    Little, 2019; Lin, Stich, Patel, Jaggi: Don't Use Large Mini-Batches, Use Local SGD, 2020.

    Args:
        sync_every: Inner steps per round.
        method: Aggregation method. Default: `sparcml.Dense()`.
        warm_up: Number of first steps after each of which models are averaged.
    """

    name: ClassVar[str] = "local_sgd"
    number: ClassVar[int] = 0

    warm_up: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer(self, "warm_up", minimum=0)
        if self.warm_up and (self.parts > 1 or self.delay):
            raise ValueError(
                f"LocalSGD: warm_up must be 0 with fragments or a delay, got {self.warm_up}; set "
                f"fragments=1 and delay=0"
            )

    @property
    def outer(self) -> Outer:
        """Averaging."""
        return Outer(1.0)

    def _sent(self, number: int) -> int | None:
        return 0 if number <= self.warm_up else super()._sent(number - self.warm_up)

    def _merged(self, number: int) -> int | None:
        return 0 if number <= self.warm_up else super()._merged(number - self.warm_up)
