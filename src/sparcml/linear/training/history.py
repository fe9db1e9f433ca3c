"""What every pass has brought, and what it took."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparcml.linear import SolverProgress


@dataclass(frozen=True)
class EpochRecord:
    """One pass, as one rank saw it.

    Attributes:
        loss: The mean over its rows, each before its step; of coordinate descent, the
            objective after it.
        held_out: The mean over held-out rows after it, if there are some.
        seconds: It took.
        communicating: Of these, in communication.
        bytes: This rank has sent; of an engine's own sums, which nobody counts, a ring's.
        dense_bytes: It would have sent for sums of dense vectors, in a ring; None if there
            is no such.
    """

    loss: float
    held_out: float | None
    seconds: float
    communicating: float
    bytes: int
    dense_bytes: float | None

    @classmethod
    def of(cls, last: SolverProgress) -> EpochRecord:
        """From what a solver has told last in it."""
        spent = last.seconds, last.communicating, last.bytes, last.dense_bytes
        return cls(last.loss, None, *spent)

    def after(self, before: EpochRecord | None) -> EpochRecord:
        """With what was spent on it before."""
        if before is None:
            return self
        dense = None
        if self.dense_bytes is not None and before.dense_bytes is not None:
            dense = self.dense_bytes + before.dense_bytes
        return replace(
            self,
            seconds=self.seconds + before.seconds,
            communicating=self.communicating + before.communicating,
            bytes=self.bytes + before.bytes,
            dense_bytes=dense,
        )

    def ended(self, loss: float, held_out: float | None) -> EpochRecord:
        """With what it has brought."""
        return replace(self, loss=loss, held_out=held_out)


@dataclass
class History:
    """All passes of a run, those before its last checkpoint too."""

    passes: list[EpochRecord] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """All passes took."""
        return sum(each.seconds for each in self.passes)

    @property
    def communicating(self) -> float:
        """Of these, in communication."""
        return sum(each.communicating for each in self.passes)

    @property
    def bytes(self) -> int:
        """This rank has sent."""
        return sum(each.bytes for each in self.passes)

    @property
    def dense_bytes(self) -> float | None:
        """It would have sent for sums of dense vectors."""
        known = [e.dense_bytes for e in self.passes if e.dense_bytes is not None]
        return sum(known) if known else None

    def kept(self) -> list[dict[str, Any]]:
        """As JSON has it."""
        return [asdict(each) for each in self.passes]

    @classmethod
    def of(cls, kept: Sequence[dict[str, Any]]) -> History:
        """From what `kept` gave."""
        return cls([EpochRecord(**each) for each in kept])
