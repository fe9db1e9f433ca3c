"""What a run has come to, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sparcml.linear.training.bar import number, of_dense

if TYPE_CHECKING:
    from sparcml import Communicator
    from sparcml.linear.training.config import TrainingConfig
    from sparcml.linear.training.history import EpochRecord, History
    from sparcml.linear.training.loop import Result
    from sparcml.linear.training.model import Model

FIRST, LAST = 3, 7  # passes that are shown of many
SHOWN = 5  # classes


def show(comm: Communicator, settings: TrainingConfig, result: Result) -> None:
    """Print the passes and the whole."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    loss = "loss" if settings.solver == "sgd" else "objective"
    for heading in ("pass", loss, "held out", "seconds", "communi-\ncating", "bytes\nsent"):
        table.add_column(heading, justify="right", no_wrap=True)
    if settings.solver == "sgd":
        table.add_column("of dense\nbytes", justify="right", no_wrap=True)
    for cells in _passes(result.history, len(table.columns)):
        table.add_row(*cells)
    console.print(table)
    facts = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    facts.add_column(no_wrap=True, style="bold")
    facts.add_column(overflow="fold")
    for name, value in _facts(comm, settings, result):
        facts.add_row(name, value)
    console.print()
    console.print(facts)


def _passes(history: History, width: int) -> list[list[str]]:
    rows = [_cells(i + 1, each)[:width] for i, each in enumerate(history.passes)]
    if len(rows) <= FIRST + LAST + 1:
        return rows
    return [*rows[:FIRST], ["..."], *rows[-LAST:]]


def _cells(which: int, done: EpochRecord) -> list[str]:
    alone = not done.bytes
    return [
        str(which),
        f"{done.loss:.6f}",
        "" if done.held_out is None else f"{done.held_out:.6f}",
        f"{done.seconds:.2f}",
        "" if alone else f"{done.communicating / max(done.seconds, 1e-9):.0%}",
        "" if alone else f"{number(done.bytes)}B",
        of_dense(done.bytes, done.dense_bytes) if done.dense_bytes else "",
    ]


def _facts(
    comm: Communicator, settings: TrainingConfig, result: Result
) -> list[tuple[str, str]]:
    model, data, history = result.model, result.data, result.history
    about = model.about
    size = f"{about['rows']:,} x {about['features']:,}, {about['entries']:,} entries"
    rows = [
        ("rows", f"{size}; indices from {0 if model.zero_based else 1}"),
        *_classes(model),
        ("ranks", f"{comm.size} ({comm.engine})" if comm.size > 1 else "1"),
        ("solver", str(about["solver"])),
        ("passes", f"{about['passes']}{result.stopped and ': ' + result.stopped}"),
    ]
    if best := about.get("best"):
        which = f"{min(best)}" if min(best) == max(best) else f"{min(best)} to {max(best)}"
        rows.append(("kept", f"pass {which}, the best on held-out rows"))
    if result.accuracy is not None and data.held_out is not None:
        rows.append(
            ("held out", f"{data.held_out.total:,} rows, {result.accuracy:.2%} right")
        )
    used = np.count_nonzero(model.weights)
    rows.append(("weights", f"{used:,} of {model.weights.size:,} are not zero"))
    took = f"{history.seconds:.2f} s"
    if comm.size > 1:
        took += f", {history.communicating / max(history.seconds, 1e-9):.0%} communicating"
    rows.append(("time", took))
    if comm.size > 1:
        sent = f"{number(history.bytes)}B by rank 0"
        if settings.communication == "dense":
            sent += ", reckoned as a ring's: the engine does not count its own"
        elif history.dense_bytes:
            dense = f"{number(history.dense_bytes)}B with dense sums"
            sent += f", {of_dense(history.bytes, history.dense_bytes)} of {dense}"
        rows.append(("sent", sent))
    rows.append(("model", str(settings.out)))
    return rows


def _classes(model: Model) -> list[tuple[str, str]]:
    if model.classes is None or len(model.classes) == 2:
        return []
    some = ", ".join(f"{label:g}" for label in model.classes[:SHOWN])
    more = ", ..." * (len(model.classes) > SHOWN)
    return [("classes", f"{len(model.classes)} ({some}{more}), each against all others")]
