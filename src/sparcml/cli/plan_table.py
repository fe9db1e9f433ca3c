"""A plan as tables for a terminal."""

from typing import Any

from sparcml.network.plan import Plan, Row, pays_below, scaling

SHOWN = 1e3  # milliseconds in a second


def show(plan: Plan, assumed: str = "") -> None:
    """Print what to expect, what scales, and the line to paste."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    console.print(_about(plan, assumed), markup=False)
    console.print(_methods(plan))
    console.print(_ranks(plan))
    for line in _verdict(plan):
        console.print(line, markup=False)


def _about(plan: Plan, assumed: str) -> str:
    model = plan.model
    text = (
        f"{model.name}: {model.parameters:,} parameters ({model.source})\n"
        f"{plan.ranks} ranks on {plan.network_name}, {plan.compute * SHOWN:.4g} ms of "
        f"computing a step"
    )
    if plan.overlap:
        text += f", {plan.overlap:.0%} of it may hide communication"
    text += f"\n({assumed})" if assumed else ""
    return text + "\nEstimated from declared costs; nothing was measured.\n"


def _table(*headings: str, left: int) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for place, heading in enumerate(headings):
        justify: Any = "left" if place < left else "right"
        table.add_column(heading, justify=justify, no_wrap=True)
    return table


def _methods(plan: Plan) -> Any:
    table = _table(
        "method",
        "collective",
        "sums\n(ms)",
        "step\n(ms)",
        "vs dense",
        "% of\nbound",
        left=2,
    )
    for row in plan.rows:
        style = "bold green" if row == plan.recommended else _style(plan, row)
        last = row is [r for r in plan.rows if r.method == row.method][-1]
        table.add_row(
            row.method,
            row.collective,
            f"{row.communication * SHOWN:.1f}",
            f"{row.step * SHOWN:.1f}",
            f"{row.speedup:.2f}x",
            f"{row.bound_percent:.0f}",
            style=style,
            end_section=last,
        )
    return table


def _style(plan: Plan, row: Row) -> str | None:
    return "dim" if row.step > plan.dense.step else None


def _ranks(plan: Plan) -> Any:
    rows = scaling(plan)
    names = list(dict.fromkeys(("dense", plan.recommended.method)))
    fastest = max(plan.bests, key=lambda row: row.speedup).method
    names = list(dict.fromkeys((*names, fastest)))
    table = _table("ranks", *(f"{name}\n(ms, busy)" for name in names), left=0)
    for ranks in dict.fromkeys(row["ranks"] for row in rows):
        of = {row["method"]: row for row in rows if row["ranks"] == ranks}
        cells = [f"{of[n]['step'] * SHOWN:.1f}, {of[n]['efficiency']:4.0%}" for n in names]
        table.add_row(str(ranks), *cells, style="bold" if ranks == plan.ranks else None)
    return table


def _verdict(plan: Plan) -> list[str]:
    lines = []
    if plan.slower:
        lines.append(f"Dense is faster than: {', '.join(plan.slower)}.")
    row = plan.recommended
    if row.method != "dense":
        (chosen,) = [c for c in plan.candidates if c.name == row.method]
        rate = pays_below(plan, chosen)
        if rate:
            lines.append(f"Dense is as fast from {rate / 1e9:.3g} Gbit/s on.")
    return [*lines, f"Take {plan.why}.", f"\n    {row.line}"]
