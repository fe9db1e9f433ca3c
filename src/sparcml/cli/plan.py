"""`sparcml plan`: estimate a training step with every method before there is a cluster."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from sparcml.aggregate.evidence import MEASURED_WITH, PAGE, TITLES, accuracy
from sparcml.aggregate.planning import methods_to_plan
from sparcml.cli.console import make_table
from sparcml.cli.plan_local import describe_local, show_local
from sparcml.cli.plan_page import page
from sparcml.cli.plan_topology import describe, show_neighbors
from sparcml.decentralized.named import by_name
from sparcml.decentralized.planning import plan_neighbors
from sparcml.local.planning import LocalRow, plan_local
from sparcml.planning.candidates import NOT_KEPT, NOT_MEASURED
from sparcml.planning.models import Model, model, of_size
from sparcml.planning.plan import Plan, Row, dense_wins_from, scaling
from sparcml.planning.plan import plan as make_plan
from sparcml.units import parse_duration

MS = 1e3  # milliseconds per second


def plan(
    params: Annotated[
        str | None, typer.Option(help="Number of parameters, such as 25.6M.")
    ] = None,
    model_name: Annotated[
        str | None,
        typer.Option(
            "--model",
            help="Name of a model, or a JSON file with the shapes of its tensors.",
        ),
    ] = None,
    ranks: Annotated[int, typer.Option("--ranks", "-n", help="World size.")] = 64,
    network: Annotated[
        str, typer.Option(help="Preset, or bandwidth and latency such as 1gbit,50us.")
    ] = "10gbit",
    step_time: Annotated[
        str | None, typer.Option(help="Computing time per step, such as 250ms.")
    ] = None,
    overlap: Annotated[
        float,
        typer.Option(help="Fraction of it that communication overlaps with, 0 to 1."),
    ] = 0.0,
    optimizer: Annotated[
        str,
        typer.Option(
            help=f"Optimizer: {', '.join(MEASURED_WITH)}. Only methods that keep the accuracy with "
            f"it are recommended."
        ),
    ] = "adamw",
    ratios: Annotated[
        str, typer.Option(help="Ratios of the sparsifiers, separated by commas.")
    ] = "0.01,0.001",
    topology: Annotated[
        str | None,
        typer.Option(
            help="Topology of decentralized methods to compare, such as ring or torus:4x8; "
            "see `sparcml topology`."
        ),
    ] = None,
    local_steps: Annotated[
        int | None,
        typer.Option(help="Steps per round of local training to compare, such as 30."),
    ] = None,
    sites: Annotated[
        int, typer.Option(help="Number of sites, for local training between them.")
    ] = 1,
    wan: Annotated[
        str | None, typer.Option(help="Bandwidth between the sites, such as 500mbit.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Output of all numbers as JSON.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(help="File for an interactive page with charts.")
    ] = None,
) -> None:
    """Estimate a training step with every method and collective, dense included."""
    try:
        chosen = _model(params, model_name)
        seconds = _step_time(step_time, chosen)
        result = make_plan(
            chosen,
            ranks,
            network,
            seconds,
            methods=methods_to_plan(_ratios(ratios)),
            overlap=overlap,
            optimizer=_optimizer(optimizer),
            accuracy=accuracy,
        )
        graph = None if topology is None else by_name(topology, ranks)
        neighbors = () if graph is None else plan_neighbors(result, graph)
        rounds = _rounds(result, local_steps, sites, wan)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if html is not None:
        _write(html, page(result))
    if as_json:
        numbers = result.as_dict()
        if graph is not None:
            numbers["decentralized"] = describe(result, graph, neighbors)
        if rounds:
            numbers["local"] = describe_local(rounds)
        typer.echo(json.dumps(numbers, indent=2))
    else:
        show(result, assumption=chosen.step_source if step_time is None else "")
        if graph is not None:
            show_neighbors(result, graph, neighbors)
        if rounds:
            show_local(rounds, f", {sites} sites on {wan}" if wan else "")
        if html is not None:
            typer.echo(f"\nInteractive page: {html}")


def _rounds(
    result: Plan, local_steps: int | None, sites: int, wan: str | None
) -> tuple[LocalRow, ...]:
    if local_steps is not None:
        return plan_local(result, local_steps, sites, wan)
    if sites != 1 or wan is not None:
        raise ValueError("--sites and --wan need --local-steps, such as 30")
    return ()


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        why = f"the page cannot be written to {str(path)!r}: {error.strerror}"
        raise typer.BadParameter(why) from None


def _model(params: str | None, name: str | None) -> Model:
    if (params is None) == (name is None):
        raise ValueError("give either --params, such as 25.6M, or --model")
    return of_size(params) if params is not None else model(name or "")


def _step_time(text: str | None, chosen: Model) -> float:
    if text is None:
        if chosen.step is None:
            raise ValueError("give --step-time, such as 250ms: the computing time per step")
        return chosen.step
    try:
        return parse_duration(text)
    except ValueError:
        raise ValueError(
            f"step time must be a time such as 250ms or 1.5s, got {text!r}"
        ) from None


def _optimizer(name: str) -> str:
    if name.lower() not in MEASURED_WITH:
        raise ValueError(
            f"optimizer must be one of {', '.join(MEASURED_WITH)}, got {name!r}; accuracy was "
            f"measured with SGD and AdamW"
        )
    return name.lower()


def _ratios(text: str) -> tuple[float, ...]:
    try:
        ratios = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(
            f"ratios must be numbers such as 0.01,0.001, got {text!r}"
        ) from None
    for ratio in ratios:
        if not 0 < ratio < 1:
            raise ValueError(f"a ratio must be above 0 and below 1, got {ratio:g}")
    return ratios


def show(plan: Plan, assumption: str = "") -> None:
    """Print the estimates, the scaling, and the recommended method as Python."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    console.print(_heading(plan, assumption), markup=False)
    console.print(_method_table(plan))
    note = f"Accuracy: the largest loss that was measured, against dense; {PAGE}.\n"
    console.print(note, markup=False)
    console.print(_collective_table(plan))
    console.print(_scaling_table(plan))
    for line in _verdict(plan):
        console.print(line, markup=False)


def _heading(plan: Plan, assumption: str) -> str:
    model = plan.model
    text = (
        f"{model.name}: {model.parameters:,} parameters ({model.source})\n"
        f"{plan.ranks} ranks on {plan.network_name}, {plan.compute * MS:.4g} ms of "
        f"computing per step"
    )
    if plan.overlap:
        text += f", {plan.overlap:.0%} of it overlaps with communication"
    text += f"\n({assumption})" if assumption else ""
    others = ", ".join(name for name in TITLES if name != plan.optimizer)
    return (
        f"{text}\nOptimizer {plan.optimizer}; others: --optimizer {others}\n"
        f"Times are estimated from declared costs; no time was measured.\n"
    )


def _method_table(plan: Plan) -> Any:
    measured = MEASURED_WITH[plan.optimizer] or plan.optimizer
    heads = ("step\n(ms)", "vs dense", f"accuracy under\n{TITLES[measured]}")
    table = make_table(("method", *heads), left=1)
    table.columns[-1].justify = "left"
    for candidate, row in zip(plan.candidates, plan.bests, strict=True):
        cells = _time(row.step), f"{row.speedup:.2f}x", str(candidate.accuracy)
        table.add_row(row.method, *cells, style=_style(plan, row))
    return table


def _style(plan: Plan, row: Row) -> str | None:
    if row == plan.recommended:
        return "bold green"
    return "dim" if row.step > plan.dense.step else None


def _time(seconds: float) -> str:
    """Return milliseconds with at most five characters, up to a hundred seconds."""
    return f"{seconds * MS:.1f}" if seconds < 1 else f"{seconds * MS:.0f}"


def _collective_table(plan: Plan) -> Any:
    heads = ("allreduce\n(ms)", "step\n(ms)", "vs dense", "% of\nbound")
    table = make_table(("method", "collective", *heads), left=2)
    for row in plan.rows:
        rows = [r for r in plan.rows if r.method == row.method]
        table.add_row(
            row.method if row is rows[0] else "",
            row.collective,
            _time(row.communication),
            _time(row.step),
            f"{row.speedup:.2f}x",
            f"{row.bound_percent:.0f}",
            style=_style(plan, row),
            end_section=row is rows[-1],
        )
    return table


def _scaling_table(plan: Plan) -> Any:
    rows = scaling(plan)
    fastest = max(plan.bests, key=lambda row: row.speedup).method
    names = list(dict.fromkeys((plan.baseline.name, plan.recommended.method, fastest)))
    heads = ("ranks", *(f"{name}\n(ms, efficiency)" for name in names))
    table = make_table(heads, left=0)
    for ranks in dict.fromkeys(row["ranks"] for row in rows):
        of = {row["method"]: row for row in rows if row["ranks"] == ranks}
        cells = [f"{of[n]['step'] * MS:.1f}, {of[n]['efficiency']:4.0%}" for n in names]
        table.add_row(str(ranks), *cells, style="bold" if ranks == plan.ranks else None)
    return table


def _verdict(plan: Plan) -> list[str]:
    lines = []
    if plan.slower:
        lines.append(f"Dense is faster than: {', '.join(plan.slower)}.")
    if plan.chosen is not plan.baseline and (bits := dense_wins_from(plan, plan.chosen)):
        lines.append(f"Dense is as fast from {bits / 1e9:.3g} Gbit/s on.")
    for verdict in (NOT_KEPT, NOT_MEASURED):
        if rows := plan.faster(verdict):
            names = ", ".join(f"{row.method} ({row.speedup:.2f}x)" for row in rows)
            label = f"accuracy {verdict}" if verdict == NOT_KEPT else verdict
            lines.append(f"Faster; {label}: {names}.")
    lines.append(f"Recommended with {TITLES[plan.optimizer]}: {plan.why}.")
    return [*lines, f"\n    {plan.recommended.line}"]
