"""Tables of a training run: one row per epoch, and a summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sparcml.cli.console import label_text, loss_text
from sparcml.cli.fit_progress import number, percent
from sparcml.linear.training.single_process import single_process_seconds

if TYPE_CHECKING:
    from sparcml import Communicator
    from sparcml.linear.training.config import TrainingConfig
    from sparcml.linear.training.history import EpochRecord, History
    from sparcml.linear.training.loop import TrainingResult
    from sparcml.linear.training.model import Model

FIRST, LAST = 3, 7  # epochs shown of many
SHOWN = 5  # classes


def show(comm: Communicator, config: TrainingConfig, result: TrainingResult) -> None:
    """Print the table of epochs and the summary."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    loss = "loss" if config.solver == "sgd" else "objective"
    for heading in ("epoch", loss, "validation", "seconds", "comm (s)", "bytes\nsent"):
        table.add_column(heading, justify="right", no_wrap=True)
    if config.solver == "sgd":
        table.add_column("of dense\nbytes", justify="right", no_wrap=True)
    if config.topology is not None:
        table.add_column("consensus\ndistance", justify="right", no_wrap=True)
    for cells in _epoch_rows(result.history, len(table.columns)):
        table.add_row(*cells)
    console.print(table)
    summary = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    summary.add_column(no_wrap=True, style="bold")
    summary.add_column(overflow="fold")
    for name, value in _summary(comm, config, result):
        summary.add_row(name, value)
    console.print()
    console.print(summary)


def _epoch_rows(history: History, width: int) -> list[list[str]]:
    rows = [_cells(i, each)[:width] for i, each in enumerate(history.epochs, start=1)]
    if len(rows) <= FIRST + LAST + 1:
        return rows
    return [*rows[:FIRST], ["..."], *rows[-LAST:]]


def _cells(epoch: int, record: EpochRecord) -> list[str]:
    single = not record.bytes
    dense = record.dense_bytes
    return [
        str(epoch),
        loss_text(record.loss),
        "" if record.validation_loss is None else loss_text(record.validation_loss),
        f"{record.seconds:.2f}",
        "" if single else f"{record.communication_seconds:.2f}",
        "" if single else f"{number(record.bytes)}B",
        percent(record.bytes, dense) if dense else "",
        "" if record.consensus_distance is None else f"{record.consensus_distance:.3g}",
    ]


def _summary(
    comm: Communicator, config: TrainingConfig, result: TrainingResult
) -> list[tuple[str, str]]:
    model, data, history = result.model, result.data, result.history
    metadata = model.metadata
    size = f"{metadata['rows']:,} x {metadata['features']:,}, nnz {metadata['nnz']:,}"
    reason = f"; stopped: {result.stop_reason}" if result.stop_reason else ""
    rows = [
        ("rows", f"{size}; indices from {0 if model.zero_based else 1}"),
        *_classes(model),
        ("ranks", f"{comm.size} ({comm.engine})" if comm.size > 1 else "1"),
        ("solver", str(metadata["solver"])),
        ("epochs", f"{metadata['epochs']}{reason}"),
        *_neighbors(config, history),
    ]
    if best := metadata.get("best_epochs"):
        epochs = f"{min(best)}" if min(best) == max(best) else f"{min(best)} to {max(best)}"
        rows.append(("model of", f"epoch {epochs}, the best on the validation set"))
    if result.accuracy is not None and data.validation is not None:
        rows.append(
            (
                "validation",
                f"{data.validation.total:,} rows, accuracy {result.accuracy:.2%}",
            )
        )
    nonzero = np.count_nonzero(model.weights)
    weights = len(model.weights) * model.features
    rows.append(("weights", f"{nonzero:,} of {weights:,} are not zero"))
    seconds = f"{history.seconds:.2f} s"
    if comm.size > 1:
        share = history.communication_seconds / max(history.seconds, 1e-9)
        seconds += f", {share:.0%} in communication"
    rows.append(("time", seconds))
    if comm.size > 1:
        rows.append(("sent", _bytes_sent(config, history)))
    rows.append(("model", str(config.out)))
    single = None
    if comm.size > 1 and config.solver == "sgd":
        single = single_process_seconds(config, data)
    if advice := _advice(comm.size, history, single):
        rows.append(("advice", advice))
    return rows


def _neighbors(config: TrainingConfig, history: History) -> list[tuple[str, str]]:
    """Return what the model is, if each rank trained its own."""
    if config.topology is None or not history.epochs:
        return []
    distance = history.epochs[-1].consensus_distance
    return [
        ("averaged", f"the mean of all ranks' models; consensus distance {distance:.3g}")
    ]


def _advice(ranks: int, history: History, single: float | None = None) -> str:
    """Return a remark if one process would have been faster than these ranks.

    Args:
        ranks: Number of ranks.
        history: Epochs of these ranks.
        single: Seconds of an epoch in one process; if they are not known, it would take as
            long as all ranks outside communication.
    """
    total = history.seconds
    if single is None:
        expected = ranks * (total - history.communication_seconds)
    else:
        expected = single * len(history.epochs)
    if ranks == 1 or expected >= total:
        return ""
    return "one process would be faster here: leave out -n, or raise --batch-size"


def _bytes_sent(config: TrainingConfig, history: History) -> str:
    sent = f"{number(history.bytes)}B by rank 0"
    if config.communication == "dense":
        return f"{sent}, estimated as a ring's: the engine does not count its own"
    if history.dense_bytes:
        dense = f"{number(history.dense_bytes)}B of a dense ring"
        return f"{sent}, {percent(history.bytes, history.dense_bytes)} of {dense}"
    return sent


def _classes(model: Model) -> list[tuple[str, str]]:
    if model.classes is None or len(model.classes) == 2:
        return []
    some = ", ".join(map(label_text, model.classes[:SHOWN]))
    more = ", ..." * (len(model.classes) > SHOWN)
    return [("classes", f"{len(model.classes)} ({some}{more}), one-vs-rest")]
