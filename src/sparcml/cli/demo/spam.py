"""Train a spam classifier with sparse and with dense allreduces, and compare both runs."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from sparcml.cli.console import make_table
from sparcml.cli.fit_progress import number
from sparcml.cli.plot import BLUE, GREY, ORANGE, figure, plain
from sparcml.linear import LOSSES, SGD
from sparcml.linear.solvers.objective import margins, mean_loss
from sparcml.linear.training.history import EpochRecord, History

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from sparcml import Communicator
    from sparcml.linear import SGDState, SolverProgress
    from sparcml.linear.data.bundled import Split

TOLERANCE = 1e-4  # relative to the largest weight: float32 sums in another order
HEADS = (
    "allreduce",
    "epochs",
    "epoch\n(s)",
    "comm\n(s)",
    "bytes sent per\nrank and epoch",
    "validation\nloss",
    "accuracy",
)


@dataclass(frozen=True, eq=False)
class Run:
    """Training with one type of allreduce.

    Attributes:
        communication: "sparse" or "dense".
        history: Records of all epochs.
        accuracy: Accuracy on the validation set after the last epoch.
        weights: Weights after the number of epochs that both runs have made.
        same: Whether these are bit-identical on all ranks.
    """

    communication: str
    history: History
    accuracy: float
    weights: NDArray[Any]
    same: bool

    @property
    def seconds(self) -> float:
        """Seconds per epoch."""
        return self.history.seconds / len(self.history.epochs)

    @property
    def communication_seconds(self) -> float:
        """Seconds of communication per epoch."""
        return self.history.communication_seconds / len(self.history.epochs)

    @property
    def nbytes(self) -> float:
        """Bytes sent per rank and epoch."""
        return self.history.bytes / len(self.history.epochs)


def compare_runs(
    comm: Communicator,
    data: Split,
    solver: SGD,
    epochs: dict[str, int],
    progress: Callable[[str], None],
) -> list[Run]:
    """Train once with each type of allreduce, for its number of epochs. Collective."""
    common = min(epochs.values())
    return [
        _train(comm, data, replace(solver, communication=name), count, common, progress)
        for name, count in epochs.items()
    ]


def difference(runs: list[Run]) -> float:
    """Return the largest difference of the weights, relative to the largest weight."""
    first, second = (run.weights for run in runs)
    return float(np.abs(first - second).max() / np.abs(first).max())


def _train(
    comm: Communicator,
    data: Split,
    solver: SGD,
    epochs: int,
    common: int,
    progress: Callable[[str], None],
) -> Run:
    communication = solver.communication
    state, history = solver.init(data.train), History()
    weights = state.weights
    for epoch in range(1, epochs + 1):
        progress(f"{communication}: epoch {epoch} of {epochs}")
        history.epochs.append(_epoch(comm, data, replace(solver, epochs=epoch), state))
        if epoch == common:
            weights = state.weights.copy()
    checksums = comm.allgather(np.array([zlib.crc32(weights.data)], np.float64))
    scores = margins(data.validation, state.weights, state.intercept)
    correct = float(np.count_nonzero((scores > 0) == (data.validation.labels > 0)))
    accuracy = float(comm.allreduce(np.array([correct]))[0]) / data.validation.total
    return Run(communication, history, accuracy, weights, len(np.unique(checksums)) == 1)


def _epoch(comm: Communicator, data: Split, solver: SGD, state: SGDState) -> EpochRecord:
    last: list[SolverProgress] = []
    comm.barrier()
    start = comm.now()
    solver.run(
        comm,
        data.train,
        state,
        watch=lambda progress, _: last.append(progress),
        every=data.train.total,  # at the end only
    )
    seconds = comm.now() - start
    loss = LOSSES[solver.loss]
    validation = mean_loss(comm, data.validation, loss, state.weights, state.intercept)
    record = replace(
        EpochRecord.of(last[-1]), loss=state.losses[-1], validation_loss=validation
    )
    return replace(record, seconds=seconds)


def show(runs: list[Run], dense_allreduce: str) -> None:
    """Print one row per run, their ratios, and what the dense allreduce is."""
    from rich.console import Console

    table = make_table(HEADS)
    for run in runs:
        table.add_row(
            run.communication,
            str(len(run.history.epochs)),
            f"{run.seconds:.2f}",
            f"{run.communication_seconds:.2f}",
            f"{number(run.nbytes)}B",
            f"{run.history.epochs[-1].validation_loss:.3f}",
            f"{run.accuracy:.1%}",
        )
    sparse, dense = runs
    table.add_section()
    table.add_row(
        "dense / sparse",
        "",
        f"{dense.seconds / sparse.seconds:.1f}x",
        f"{dense.communication_seconds / max(sparse.communication_seconds, 1e-9):.1f}x",
        f"{dense.nbytes / max(sparse.nbytes, 1):.1f}x",
        style="bold",
    )
    Console(highlight=False).print(table)
    typer.echo(f"(dense: {dense_allreduce})")


def draw(path: Path, runs: list[Run], place: str) -> None:
    """Plot the validation loss over time, and the time of an epoch."""
    picture = figure(10, 4.2)
    picture.suptitle(f"Logistic regression on e-mails, 4 ranks {place}", fontsize=12)
    left, right = picture.subplots(1, 2, width_ratios=(1.25, 1))
    for run, colour, mark in zip(runs, (BLUE, ORANGE), "os", strict=True):
        records = run.history.epochs
        ends = np.cumsum([0.0, *(record.seconds for record in records)])
        start = np.log(2.0)  # the loss of weights of zero
        losses = [start, *(record.validation_loss for record in records)]
        label = f"{run.communication}, {len(records)} epochs: accuracy {run.accuracy:.1%}"
        left.plot(ends, losses, f"{mark}-", color=colour, ms=4, label=label)
    left.set(xlabel="seconds of training", ylabel="validation loss")
    left.set_title("One mark per epoch", fontsize=10)
    left.set_xlim(left=0)
    left.set_ylim(bottom=0)
    left.legend(frameon=False)
    _draw_times(right, runs)
    for axes in (left, right):
        plain(axes)
    right.grid(visible=False)
    picture.savefig(path, dpi=150)


def _draw_times(axes: Any, runs: list[Run]) -> None:
    names = [run.communication for run in runs]
    communication = np.array([run.communication_seconds for run in runs])
    compute = np.array([run.seconds for run in runs]) - communication
    axes.barh(names, compute, color=GREY, label="computing")
    axes.barh(names, communication, left=compute, color=[BLUE, ORANGE])
    longest = max(run.seconds for run in runs)
    for row, run in enumerate(runs):
        text = f" {run.seconds:.2f} s, {run.nbytes / 1e6:,.0f} MB per rank"
        inside = run.seconds > 0.5 * longest
        position = (0.0, row - 0.46) if inside else (run.seconds, row)
        axes.text(*position, text, va="center")
    axes.invert_yaxis()
    axes.set(xlabel="seconds per epoch (grey: computing)")
    axes.set_title("Time and bytes of an epoch", fontsize=10)
