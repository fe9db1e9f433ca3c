"""The interface by which a training run reports its progress, such as to a terminal."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..solvers.solver_progress import SolverProgress
    from .history import EpochRecord


class TrainingObserver:
    """An observer that ignores everything; subclasses override what they show.

    Attributes:
        wants_progress: Whether SGD reports several times per epoch. It must be the same on all
            ranks, since a report of the mean loss is collective.
    """

    wants_progress = False

    def task(self, name: str) -> AbstractContextManager[None]:
        """Enter a task before the training, such as reading."""
        del name
        return nullcontext()

    def training(self, epochs: int, completed: int) -> AbstractContextManager[None]:
        """Enter the training, of which some epochs may be complete already."""
        del epochs, completed
        return nullcontext()

    def on_target(self, position: int, count: int) -> None:
        """Start one of the binary models that an epoch trains."""

    def on_progress(self, progress: SolverProgress) -> None:
        """Receive a report of SGD, on all ranks."""

    def on_epoch(self, record: EpochRecord) -> None:
        """Receive the record of an epoch, on all ranks."""
