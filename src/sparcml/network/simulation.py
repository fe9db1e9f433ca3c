"""What a simulated run gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..transport.timeline import Timeline

if TYPE_CHECKING:
    from ..transport import Transport
    from ..transport.timeline import EventArgs

T = TypeVar("T")


class EventBudget:
    """How many more events are kept."""

    def __init__(self, events: int) -> None:
        self.left = events
        self.missed = 0  # that came when none was left


class BoundedTimeline(Timeline):
    """The events of one rank, as long as there is room for them."""

    def __init__(self, transport: Transport, budget: EventBudget) -> None:
        super().__init__(transport)
        self._budget = budget

    def add(self, name: str, start: float, end: float, args: EventArgs) -> None:
        """Something that this strand has done."""
        if self._budget.left:
            self._budget.left -= 1
            super().add(name, start, end, args)
        else:
            self._budget.missed += 1


@dataclass(frozen=True, repr=False)
class Simulation(Generic[T]):
    """What the ranks returned, and what it took them.

    Attributes:
        results: What each rank returned, in the order of ranks.
        rank_seconds: When each rank was done, in simulated seconds.
        rank_bytes: What each rank has sent.
        rank_messages: In how many messages.
    """

    results: list[T]
    rank_seconds: tuple[float, ...]
    rank_bytes: tuple[int, ...]
    rank_messages: tuple[int, ...]
    _timelines: tuple[Timeline, ...] = field(default=(), compare=False)
    _missed: int = field(default=0, compare=False)

    def __repr__(self) -> str:
        return (
            f"Simulation(ranks={len(self.results)}, seconds={self.seconds:g}, "
            f"bytes={self.bytes}, messages={self.messages})"
        )

    @property
    def seconds(self) -> float:
        """When the last rank was done."""
        return max(self.rank_seconds)

    @property
    def bytes(self) -> int:
        """What all ranks have sent."""
        return sum(self.rank_bytes)

    @property
    def messages(self) -> int:
        """In how many messages."""
        return sum(self.rank_messages)

    @cached_property
    def trace(self) -> dict[str, Any]:
        """When each rank did what: `json.dump` makes a file of it that Perfetto opens."""
        about = {"run": "simulation", "events left out": self._missed}
        events = [event for timeline in self._timelines for event in timeline.drain()]
        return {"otherData": about, "traceEvents": events}
