"""The state of SCD: plain arrays, to be saved and resumed bit for bit."""

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

ARRAYS = ("coordinates", "trust_radius", "margins", "bias")


@dataclass(eq=False)
class SCDState:
    """One rank's part of a model in training.

    Attributes:
        coordinates: The weights of this rank's columns.
        trust_radius: Largest change of each in its next step.
        margins: w.x + b of all rows.
        bias: The intercept and its trust radius.
        objectives: The objective before the first epoch, and after each.
    """

    coordinates: Doubles
    trust_radius: Doubles
    margins: Doubles
    bias: Doubles
    objectives: list[float] = field(default_factory=list)

    @classmethod
    def initial(cls, columns: int, rows: int) -> SCDState:
        """Return a state with all weights zero."""
        return cls(
            np.zeros(columns), np.ones(columns), np.zeros(rows), np.array([0.0, 1.0])
        )

    @property
    def intercept(self) -> float:
        """The intercept."""
        return float(self.bias[0])

    @property
    def epoch(self) -> int:
        """Completed epochs."""
        return max(len(self.objectives) - 1, 0)

    def weights(self, comm: Communicator, features: int) -> Doubles:
        """Return all weights on all ranks. Collective."""
        nonzero = np.flatnonzero(self.coordinates)
        columns = (nonzero * comm.size + comm.rank).astype(np.uint32)
        own = Stream.unchecked(features, columns, self.coordinates[nonzero])
        weights = np.zeros(features)
        for part in comm.allgather(own):
            weights[part.indices] = part.values
        return weights

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all of it for `np.savez`; the arrays are the state's own."""
        own = {name: getattr(self, name) for name in ARRAYS}
        return {**own, "objectives": np.array(self.objectives)}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> SCDState:
        """Restore what `arrays` returned, also in version 0.1."""
        if "trust" in arrays:  # the name in 0.1
            arrays = {**arrays, "trust_radius": arrays["trust"]}
        if missing := {*ARRAYS, "objectives"} - arrays.keys():
            raise ValueError(
                f"SCDState.of: arrays must be those of SCDState.arrays, got none named "
                f"{', '.join(sorted(missing))}"
            )
        own = {name: arrays[name].copy() for name in ARRAYS}
        return cls(**own, objectives=arrays["objectives"].tolist())
