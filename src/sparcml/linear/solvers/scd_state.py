"""Where coordinate descent stands: plain arrays, to be kept and gone on from, bit for bit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...stream import Stream

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator

    Doubles = NDArray[np.float64]


@dataclass(eq=False)
class SCDState:
    """Where a descent stands, on one rank.

    Attributes:
        coordinates: The weights of this rank's columns.
        trust: How far each may go in its next step.
        margins: w.x + b of all rows.
        bias: The intercept, and how far it may go.
        objectives: Before the first pass, and after each.
    """

    coordinates: Doubles
    trust: Doubles
    margins: Doubles
    bias: Doubles
    objectives: list[float] = field(default_factory=list)

    @property
    def intercept(self) -> float:
        """The intercept."""
        return float(self.bias[0])

    @property
    def epoch(self) -> int:
        """Passes over all coordinates that are complete."""
        return max(len(self.objectives) - 1, 0)

    def weights(self, comm: Communicator, features: int) -> Doubles:
        """All weights, on all ranks; a collective call."""
        kept = np.flatnonzero(self.coordinates)
        own = (kept * comm.size + comm.rank).astype(np.uint32)
        mine = Stream.unchecked(features, own, self.coordinates[kept])
        whole = np.zeros(features)
        for part in comm.allgather(mine):
            whole[part.indices] = part.values
        return whole

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of it, for `np.savez`; the arrays are its own."""
        return {
            "coordinates": self.coordinates,
            "trust": self.trust,
            "margins": self.margins,
            "bias": self.bias,
            "objectives": np.array(self.objectives),
        }

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> SCDState:
        """From what `arrays` gave."""
        names = ("coordinates", "trust", "margins", "bias")
        if missing := {*names, "objectives"} - arrays.keys():
            raise ValueError(f"SCDState.of: these arrays lack {', '.join(missing)}")
        kept = {name: arrays[name].copy() for name in names}
        return cls(**kept, objectives=arrays["objectives"].tolist())
