"""The part of `sparcml plan --topology`: decentralized methods compared with allreduces."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sparcml.cli.console import make_table
from sparcml.decentralized import Topology
from sparcml.decentralized.planning import NeighborRow
from sparcml.planning.plan import Plan
from sparcml.units import format_bytes

MS = 1e3  # milliseconds per second
HEADS = ("method", "bytes per\nstep, rank", "exchange\n(ms)", "step\n(ms)", "vs dense")
SAME = 0.005  # relative difference of times that count as equal


def describe(plan: Plan, topology: Topology, rows: Sequence[NeighborRow]) -> dict[str, Any]:
    """Return all numbers, for JSON; infinity is None."""
    steps = topology.steps_to_consensus()
    return {
        "topology": topology.name,
        "spectral_gap": topology.spectral_gap,
        "steps_to_consensus": None if math.isinf(steps) else steps,
        "rows": [asdict(row) for row in rows],
        "verdict": verdict(plan, topology, rows),
    }


def show_neighbors(plan: Plan, topology: Topology, rows: Sequence[NeighborRow]) -> None:
    """Print the table, which of both is faster, and the fastest method as Python."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    console.print(f"\nWith the neighbours of {topology.name}:", markup=False)
    table = make_table((*HEADS, "vs allreduce\nof the same"), left=1)
    for row in rows:
        table.add_row(
            row.method,
            format_bytes(row.nbytes),
            f"{row.communication * MS:.1f}",
            f"{row.step * MS:.1f}",
            f"{row.speedup:.2f}x",
            f"{row.same_values:.2f}x",
            style="dim" if row.speedup < 1 else None,
        )
    console.print(table)
    if len(rows) == 1:
        console.print(
            f"DCD and Choco need a symmetric graph that does not change, unlike "
            f"{topology.name}.",
            markup=False,
        )
    console.print(verdict(plan, topology, rows), markup=False)
    fastest = min(rows, key=lambda row: row.step)
    console.print(f"\n    {fastest.line}", markup=False)


def verdict(plan: Plan, topology: Topology, rows: Sequence[NeighborRow]) -> str:
    """Return which of D-PSGD and the best dense allreduce is faster, and by how much."""
    row, dense = rows[0], plan.dense
    times = (
        f"{row.step * MS:.1f} ms per step with D-PSGD, {dense.step * MS:.1f} ms with a dense "
        f"allreduce by {dense.collective}"
    )
    if abs(row.speedup - 1) <= SAME:
        first = f"Equally fast: {times}."
    elif row.speedup > 1:
        first = f"D-PSGD is {row.speedup:.2f}x as fast: {times}."
    else:
        first = f"Allreduce is {1 / row.speedup:.2f}x as fast: {times}."
    steps = topology.steps_to_consensus()
    count = "no number of" if math.isinf(steps) else f"{steps:,.0f}"
    return (
        f"{first} An allreduce is exact; {topology.name} needs {count} steps to shrink "
        f"differences between ranks to 1e-6. Check the loss by training."
    )
