"""What a solver tells while it runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SolverProgress:
    """How far a solver is; the same on all ranks but for seconds and bytes.

    Attributes:
        epoch: Passes that are complete.
        step: Batches of the present pass that are done.
        steps: Batches of a pass.
        loss: The mean loss of all ranks' rows since the last report, each before its step.
        rate: The rate of the last step.
        rows_per_second: Of all ranks together, since the last report.
        seconds: Since this run began.
        communicating: Of these, in sums over ranks.
        bytes: That this rank has sent since this run began; of engines' own sums, a ring's.
        dense_bytes: That it would have sent for sums of dense vectors, in a ring.
    """

    epoch: int
    step: int
    steps: int
    loss: float
    rate: float
    rows_per_second: float
    seconds: float
    communicating: float
    bytes: int
    dense_bytes: float
