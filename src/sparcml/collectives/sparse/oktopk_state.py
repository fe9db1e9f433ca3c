"""State of oktopk between calls: the offsets of the ranges, and the threshold.

The state belongs to one communicator; a duplicate starts without it. All ranks make the
same calls and decide by values that all of them know, so that they hold the same state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..checks import Shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...stream import Stream
    from ..call import Call

OFFSETS_EVERY, THRESHOLD_EVERY = 64, 32  # calls
SCALE = 1.008  # factor that raises or lowers a threshold
MAX_SHAPES = 256  # shapes that are remembered, P + 1 numbers each


@dataclass
class OkTopkState:
    """State for vectors of one size, block and dtype.

    Attributes:
        calls: Number of calls so far.
        offsets: Offsets of the ranges.
        threshold: Smallest magnitude that is selected.
        k: Number of entries that the threshold was computed for.
        selected: Number of entries that it selected then: k, but for ties and zeros.
        recompute_at: Call that recomputes it at the latest.
    """

    calls: int = 0
    offsets: Sequence[int] = ()
    threshold: float = 0.0
    k: int = 0
    selected: int = 0
    recompute_at: int = 0

    def needs_offsets(self) -> bool:
        """Whether this call recomputes the ranges."""
        return self.calls % OFFSETS_EVERY == 0

    def needs_threshold(self, k: int) -> bool:
        """Whether this call recomputes the threshold, given its k."""
        similar = 2 * self.k <= 3 * k and 4 * k <= 5 * self.k
        return self.calls >= self.recompute_at or not similar

    def record_computed(self, k: int, selected: int) -> None:
        """Record how many entries a new threshold has selected."""
        self.k, self.selected = k, selected
        self.recompute_at = self.calls + THRESHOLD_EVERY

    def record_reused(self, selected: int) -> None:
        """Adjust a reused threshold to the data, or discard it if it is far off."""
        if not self.selected <= 2 * selected <= 4 * self.selected:
            self.recompute_at = 0
        elif 3 * selected < 2 * self.selected:
            self.threshold /= SCALE
        elif 4 * selected > 5 * self.selected:
            self.threshold *= SCALE


def load(call: Call, x: Stream) -> OkTopkState:
    """Return the state for vectors like x; the least recently used one is dropped."""
    states: dict[Shape, OkTopkState] = call.persistent.setdefault("oktopk", {})
    state = states.pop(Shape.of(x), None) or OkTopkState()
    states[Shape.of(x)] = state
    if len(states) > MAX_SHAPES:
        del states[next(iter(states))]
    return state
