"""The part of `sparcml plan --local-steps`: local training compared with a dense step."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sparcml.cli.console import make_table
from sparcml.local.planning import LocalRow
from sparcml.units import format_bytes

MS = 1e3  # milliseconds per second
HEADS = (
    "form",
    "bytes per\nstep, rank",
    "exchange\n(ms)",
    "step\n(ms)",
    "vs dense",
    "compute",
)


def describe_local(rows: Sequence[LocalRow]) -> list[dict[str, Any]]:
    """Return all numbers, for JSON."""
    return [asdict(row) for row in rows]


def show_local(rows: Sequence[LocalRow], where: str) -> None:
    """Print the table, and the fastest form as Python."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    console.print(f"\nWith local training{where}:", markup=False)
    table = make_table(HEADS, left=1)
    for row in rows:
        table.add_row(
            row.form,
            format_bytes(row.nbytes),
            f"{row.exchange * MS:.1f}",
            f"{row.step * MS:.1f}",
            f"{row.speedup:.2f}x",
            f"{row.utilization:.1%}",
        )
    console.print(table)
    fastest = min(rows, key=lambda row: row.step)
    console.print(
        f"{fastest.form} is fastest: computing takes {fastest.utilization:.1%} of a step. Local "
        f"steps change the result; check the loss by training.",
        markup=False,
    )
    if fastest.line:
        console.print(f"\n    {fastest.line}", markup=False)
