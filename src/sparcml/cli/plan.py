"""`sparcml plan`: whether compression will pay, before there is a cluster."""

import json
from pathlib import Path
from typing import Annotated

import typer

from sparcml.cli.plan_page import page
from sparcml.cli.plan_table import show
from sparcml.network.models import Model, model, of_size
from sparcml.network.plan import plan as make
from sparcml.units import parse_duration


def plan(
    params: Annotated[
        str | None, typer.Option(help="How many parameters, such as 25.6M.")
    ] = None,
    model_name: Annotated[
        str | None,
        typer.Option("--model", help="A known model, or a JSON file with tensors' shapes."),
    ] = None,
    ranks: Annotated[int, typer.Option("--ranks", "-n", help="How many train.")] = 64,
    network: Annotated[
        str, typer.Option(help="A known network, or a rate such as 1gbit,50us.")
    ] = "10gbit",
    step_time: Annotated[
        str | None,
        typer.Option(help="How long a rank computes for a step, such as 250ms."),
    ] = None,
    overlap: Annotated[
        float, typer.Option(help="Part of it behind which communication hides, 0 to 1.")
    ] = 0.0,
    ratios: Annotated[
        str, typer.Option(help="Parts that TopK sends, separated by commas.")
    ] = "0.01,0.001",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print everything as JSON.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(help="Write a page with charts to play with.")
    ] = None,
) -> None:
    """Estimate a training step of every method and collective, dense included."""
    try:
        chosen = _model(params, model_name)
        seconds = _step(step_time, chosen)
        found = make(
            chosen, ranks, network, seconds, overlap=overlap, ratios=_ratios(ratios)
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if html is not None:
        _write(html, page(found))
    if as_json:
        typer.echo(json.dumps(found.as_dict(), indent=2))
    else:
        show(found, assumed=chosen.step_source if step_time is None else "")
        if html is not None:
            typer.echo(f"\nTo play with: {html}")


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


def _step(text: str | None, chosen: Model) -> float:
    if text is None:
        if chosen.step is None:
            raise ValueError("give --step-time, such as 250ms: how long a rank computes")
        return chosen.step
    try:
        seconds = parse_duration(text)
    except ValueError:
        seconds = -1.0
    if seconds < 0:
        raise ValueError(f"step time must be a time such as 250ms or 1.5s, got {text!r}")
    return seconds


def _ratios(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"ratios must be such as 0.01,0.001, got {text!r}") from None
