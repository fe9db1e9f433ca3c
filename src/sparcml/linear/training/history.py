"""Losses and costs of each epoch."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..solvers.solver_progress import SolverProgress

# Names in the checkpoints of version 0.1.
RENAMED = {"held_out": "validation_loss", "communicating": "communication_seconds"}


@dataclass(frozen=True)
class EpochRecord:
    """One epoch, as one rank saw it.

    Attributes:
        loss: SGD: mean loss over the rows, each before its step; SCD: objective at the end.
        validation_loss: Mean loss on the validation set at the end, if there is one.
        seconds: Wall time.
        communication_seconds: Seconds of these in communication.
        bytes: Bytes sent by this rank; those of a ring for an engine's own allreduce, whose
            bytes are not counted.
        dense_bytes: Bytes that it would have sent in a dense ring; None if it sent no
            gradients.
        consensus_distance: With neighbours, the root mean square distance of the ranks' models
            from their mean at the end; of several targets, that of the last.
    """

    loss: float
    validation_loss: float | None
    seconds: float
    communication_seconds: float
    bytes: int
    dense_bytes: float | None
    consensus_distance: float | None = None

    @classmethod
    def of(cls, last: SolverProgress) -> EpochRecord:
        """Return the costs in a solver's last report of an epoch."""
        costs = last.seconds, last.communication_seconds, last.bytes, last.dense_bytes
        return cls(last.loss, None, *costs)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> EpochRecord:
        """Restore a record, also of version 0.1."""
        return cls(**{RENAMED.get(name, name): value for name, value in values.items()})

    def plus(self, earlier: EpochRecord | None) -> EpochRecord:
        """Add the costs of an earlier part of the same epoch."""
        if earlier is None:
            return self
        dense = None
        if self.dense_bytes is not None and earlier.dense_bytes is not None:
            dense = self.dense_bytes + earlier.dense_bytes
        return replace(
            self,
            seconds=self.seconds + earlier.seconds,
            communication_seconds=self.communication_seconds
            + earlier.communication_seconds,
            bytes=self.bytes + earlier.bytes,
            dense_bytes=dense,
        )


@dataclass
class History:
    """All epochs of a run, including those before its checkpoint."""

    epochs: list[EpochRecord] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Total wall time."""
        return sum(each.seconds for each in self.epochs)

    @property
    def communication_seconds(self) -> float:
        """Total seconds in communication."""
        return sum(each.communication_seconds for each in self.epochs)

    @property
    def bytes(self) -> int:
        """Total bytes sent by this rank."""
        return sum(each.bytes for each in self.epochs)

    @property
    def dense_bytes(self) -> float | None:
        """Total bytes that it would have sent in a dense ring."""
        counted = [e.dense_bytes for e in self.epochs if e.dense_bytes is not None]
        return sum(counted) if counted else None

    def to_json(self) -> list[dict[str, Any]]:
        """Return values for JSON."""
        return [asdict(each) for each in self.epochs]

    @classmethod
    def from_json(cls, values: Sequence[Mapping[str, Any]]) -> History:
        """Restore what `to_json` returned, also in version 0.1."""
        return cls([EpochRecord.from_json(each) for each in values])
