"""Both readings on the ranks of a job; the first rank reports."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch
import typer
from torch import distributed as dist

from sparcml.cli.demo.lstm_reader import STEPS, read
from sparcml.cli.demo.lstm_report import draw, show
from sparcml.cli.plot import picture
from sparcml.communicator.collective_errors import run_collectively

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sparcml import Communicator
    from sparcml.cli.console import StatusLine


def compare(
    comm: Communicator,
    place: str,
    out: Path,
    doing: StatusLine,
    steps: Mapping[str, int] = STEPS,
) -> None:
    """Train with dense and with compressed sums, and tell."""
    torch.set_num_threads(1)  # the ranks are here for the other cores
    if not dist.is_initialized():
        dist.init_process_group("gloo")
    first = comm.rank == 0
    if first:
        typer.echo(
            f"\nA second scene: {comm.size} ranks read Moby-Dick with an LSTM, by PyTorch's DDP,"
            f"\n{place}.\n"
        )
    tell = doing.show if first else lambda _: None
    readings = [read(comm, sums, count, tell) for sums, count in steps.items()]
    if first:
        show(readings)
    drawing = partial(picture, out, partial(draw, out, readings, place))
    run_collectively(comm, drawing if first else lambda: None)
    dist.destroy_process_group()
