"""What oktopk keeps from call to call: where regions begin, and the threshold.

It belongs to one communicator, and a duplicate starts without it. All ranks make the same
calls and decide by what all of them know, so they keep the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..base import Shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...stream import Stream
    from ..base import Call

EDGES_EVERY, THRESHOLD_EVERY = 64, 32  # calls
SCALE = 1.008  # by which a threshold is raised or lowered
MOST = 256  # kinds of vectors that are remembered, P + 1 numbers each


@dataclass
class OkTopkState:
    """What is known about vectors of one size, block and dtype."""

    calls: int = 0
    edges: Sequence[int] = ()
    threshold: float = 0.0
    k: int = 0  # that the threshold was computed for
    aim: int = 0  # how many sums it kept then: k, but for ties and zeros
    due: int = 0  # the call that computes it anew, at the latest

    def wants_edges(self) -> bool:
        """Whether this call sets the regions anew."""
        return self.calls % EDGES_EVERY == 0

    def wants_threshold(self, k: int) -> bool:
        """Whether this call, with this k, computes the threshold anew."""
        near = 2 * self.k <= 3 * k and 4 * k <= 5 * self.k
        return self.calls >= self.due or not near

    def computed(self, k: int, kept: int) -> None:
        """The threshold is new, and kept so many sums."""
        self.k, self.aim, self.due = k, kept, self.calls + THRESHOLD_EVERY

    def reused(self, kept: int) -> None:
        """The old threshold kept so many: follow the data, or give up if far off."""
        if not self.aim <= 2 * kept <= 4 * self.aim:
            self.due = 0
        elif 3 * kept < 2 * self.aim:
            self.threshold /= SCALE
        elif 4 * kept > 5 * self.aim:
            self.threshold *= SCALE


def load(call: Call, x: Stream) -> OkTopkState:
    """What earlier calls found out about such vectors; the longest unused is forgotten."""
    known: dict[Shape, OkTopkState] = call.persistent.setdefault("oktopk", {})
    found = known.pop(Shape.of(x), None) or OkTopkState()
    known[Shape.of(x)] = found
    if len(known) > MOST:
        del known[next(iter(known))]
    return found
