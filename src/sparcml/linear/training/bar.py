"""What goes on, for the one who waits: on rank 0's terminal, and nowhere else."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sparcml.linear import SolverProgress
    from sparcml.linear.training.history import EpochRecord


class Bar:
    """A line that is written anew, with loss, speed and what communication takes.

    Args:
        shown: Whether anybody sees it; the same on all ranks, since telling the loss in
            mid-pass takes all of them.
        here: Whether it is this rank that shows it.
        communication: Of the engine's own dense sums nobody counts the bytes.
    """

    def __init__(self, shown: bool, here: bool, communication: str = "sparse") -> None:
        self.shown = shown
        self._counts = communication == "sparse"
        self._here = shown and here
        self._bar: Any = None
        self._task: Any = None
        self._passes = 0.0
        self._part = 0, 1
        self.last: SolverProgress

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """Say what takes so long."""
        if not self._here:
            yield
            return
        with _console().status(what):
            yield

    @contextmanager
    def passes(self, total: int, done: int) -> Iterator[None]:
        """While passes are made; some may be done already."""
        self._passes = float(done)
        if not self._here:
            yield
            return
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bars

        columns = (BarColumn(12), MofNCompleteColumn(), TextColumn("{task.description}"))
        with Bars(*columns, console=_console(), transient=True) as self._bar:
            self._task = self._bar.add_task("", total=total, completed=done)
            yield

    @contextmanager
    def part(self, turn: int, parts: int) -> Iterator[None]:
        """While one of several equal parts of a pass is made."""
        self._part = turn, parts
        yield

    def watch(self, progress: SolverProgress) -> None:
        """Called by the solver, on all ranks."""
        self.last = progress
        if not self._here:
            return
        share = progress.communicating / max(progress.seconds, 1e-9)
        text = f"loss {progress.loss:.4g}  {number(progress.rows_per_second)} rows/s"
        if progress.bytes:
            text += f"  {share:.0%} communicating"
        if progress.dense_bytes and self._counts:
            text += f"  {of_dense(progress.bytes, progress.dense_bytes)} of dense"
        turn, parts = self._part
        done = self._passes + (turn + progress.step / progress.steps) / parts
        self._bar.update(self._task, description=text, completed=round(done, 2))

    def passed(self, done: EpochRecord) -> None:
        """One more pass is complete."""
        self._passes += 1
        if self._here:
            descent = done.dense_bytes is None  # which does not tell before
            told = {"description": f"objective {done.loss:.6g}"} if descent else {}
            self._bar.update(self._task, completed=self._passes, **told)


def _console() -> Any:
    from rich.console import Console

    # The terminal is at the other end of the starter's pipe.
    return Console(stderr=True, force_terminal=True, highlight=False)


def number(value: float) -> str:
    """Three digits and a unit."""
    for scale, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= scale:
            return f"{value / scale:.3g}{unit}"
    return f"{value:.3g} " if value != int(value) else f"{value:.0f} "


def of_dense(sent: float, dense: float) -> str:
    """A share that may be small."""
    share = sent / dense
    return f"{share:.0%}" if share >= 0.1 else f"{share:.2%}"
