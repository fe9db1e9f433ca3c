"""The progress bar of `sparcml fit`, on the terminal of rank 0."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from sparcml.cli.console import loss_text
from sparcml.linear.training.observer import TrainingObserver

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sparcml.linear import SolverProgress
    from sparcml.linear.training.history import EpochRecord


class FitProgress(TrainingObserver):
    """A line with the epochs, loss, rows per second and costs of communication.

    Args:
        shown: Whether the bar is shown; the same on all ranks, since a report is collective.
        on_this_rank: Whether this rank shows it.
        communication: "sparse" or "dense"; the bytes of a dense allreduce are not counted.
        lines: Whether to print one line per epoch instead.
    """

    def __init__(
        self,
        shown: bool,
        on_this_rank: bool,
        communication: str = "sparse",
        *,
        lines: bool = False,
    ) -> None:
        self._lines = lines and on_this_rank
        self._epochs = 0
        self.wants_progress = shown
        self._counts_bytes = communication == "sparse"
        self._visible = shown and on_this_rank
        self._bar: Any = None
        self._task: Any = None
        self._completed = 0.0
        self._target = 0, 1

    def task(self, name: str) -> AbstractContextManager[None]:
        """Show a spinner."""
        return _console().status(name) if self._visible else nullcontext()

    @contextmanager
    def training(self, epochs: int, completed: int) -> Iterator[None]:
        """Show a bar of epochs."""
        self._completed, self._epochs = float(completed), epochs
        if not self._visible:
            yield
            return
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (BarColumn(12), MofNCompleteColumn(), TextColumn("{task.description}"))
        with Progress(*columns, console=_console(), transient=True) as self._bar:
            self._task = self._bar.add_task("", total=epochs, completed=completed)
            yield

    def on_target(self, position: int, count: int) -> None:
        """Note which part of the epoch follows."""
        self._target = position, count

    def on_progress(self, progress: SolverProgress) -> None:
        """Update the line."""
        if not self._visible:
            return
        share = progress.communication_seconds / max(progress.seconds, 1e-9)
        text = f"loss {progress.loss:.4g}  {number(progress.rows_per_second)} rows/s"
        if progress.bytes:
            text += f"  {share:.0%} comm"
        if progress.dense_bytes and self._counts_bytes:
            text += f"  {percent(progress.bytes, progress.dense_bytes)} of dense"
        position, count = self._target
        completed = self._completed + (position + progress.step / progress.steps) / count
        self._bar.update(self._task, description=text, completed=round(completed, 2))

    def on_epoch(self, record: EpochRecord) -> None:
        """Advance the bar by one epoch."""
        self._completed += 1
        if self._lines:
            validation, name = record.validation_loss, "loss"
            if record.dense_bytes is None:  # by scd
                name = "objective"
            more = "" if validation is None else f", validation {loss_text(validation)}"
            sys.stderr.write(
                f"epoch {self._completed:.0f}/{self._epochs}: {name} {loss_text(record.loss)}{more}"
                f", {record.seconds:.2f} s\n"
            )
            sys.stderr.flush()
        if self._visible:
            by_scd = record.dense_bytes is None  # which reports at the end of an epoch only
            text = {"description": f"objective {record.loss:.6g}"} if by_scd else {}
            self._bar.update(self._task, completed=self._completed, **text)


def _console() -> Any:
    from rich.console import Console

    # The launcher forwards this rank's output to the terminal through a pipe.
    return Console(stderr=True, force_terminal=True, highlight=False)


def number(value: float) -> str:
    """Format a number with three digits and a unit prefix."""
    for scale, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= scale:
            return f"{value / scale:.3g}{unit}"
    return f"{value:.3g} " if value != int(value) else f"{value:.0f} "


def percent(part: float, total: float) -> str:
    """Format a ratio that may be small."""
    ratio = part / total
    return f"{ratio:.0%}" if ratio >= 0.1 else f"{ratio:.2%}"
