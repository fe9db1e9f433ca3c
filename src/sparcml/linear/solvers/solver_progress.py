"""Report of SGD to its caller during training."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SolverProgress:
    """A report during training; the same on all ranks except for seconds and bytes.

    Attributes:
        epoch: Completed epochs.
        step: Completed batches of the current epoch.
        steps: Batches per epoch.
        loss: Mean loss of all ranks' rows since the last report, each before its step.
        learning_rate: Learning rate of the last step.
        rows_per_second: Rows of all ranks per second since the last report.
        seconds: Seconds since this run started.
        communication_seconds: Seconds of these in communication.
        bytes: Bytes sent by this rank since this run started; those of a ring for an engine's
            own allreduce.
        dense_bytes: Bytes that it would have sent in a dense ring.
    """

    epoch: int
    step: int
    steps: int
    loss: float
    learning_rate: float
    rows_per_second: float
    seconds: float
    communication_seconds: float
    bytes: int
    dense_bytes: float
