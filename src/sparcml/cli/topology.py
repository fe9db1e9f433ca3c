"""`sparcml topology`: compare topologies, and draw them."""

import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from sparcml import wire
from sparcml.cli.console import check_folder, print_table
from sparcml.cli.plot import INSTALL, can_draw, check_plot
from sparcml.costs.workload import ring_nbytes
from sparcml.decentralized import Topology
from sparcml.decentralized.named import NAMES, by_name
from sparcml.units import format_bytes, parse_count

VALUE_BYTES = 4
ROUNDING = 1e-12  # a factor below it is 0 but for rounding
HEADS = (
    "topology",
    "period",
    "degree",
    "bytes per\nstep, mean",
    "busiest\nrank",
    "gap",
    "steps to\n{tol:g}",
)


def topology(
    names: Annotated[
        list[str],
        typer.Argument(
            help=f"Names: {', '.join(NAMES)}; torus:4x8, base_graph:DEGREE, "
            f"random_regular:DEGREE, or an .npy file with a matrix."
        ),
    ],
    ranks: Annotated[int, typer.Option("--ranks", "-n", help="World size.")] = 16,
    parameters: Annotated[
        str, typer.Option(help="Number of parameters that each rank sends, such as 25.6M.")
    ] = "25.6M",
    tol: Annotated[
        float, typer.Option(help="Differences between ranks that count as consensus.")
    ] = 1e-6,
    out: Annotated[
        Path | None, typer.Option(help="File for a picture, such as topology.svg.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Output of all numbers as JSON.")
    ] = False,
) -> None:
    """Compare topologies: spectral gap, degree, bytes per step and steps to consensus."""
    try:
        check_folder(out)
        check_plot(out)
        count = _count(parameters)
        chosen = [by_name(name, ranks) for name in names]
        rows = [
            {"topology": name, **describe(each, count, tol)}
            for name, each in zip(names, chosen, strict=True)
        ]
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if as_json:
        result = {"ranks": ranks, "parameters": count, "tol": tol, "topologies": rows}
        typer.echo(json.dumps({**result, "allreduce_bytes": _allreduce(ranks, count)}))
    else:
        show(rows, ranks, count, tol)
    if out is not None:
        from sparcml.decentralized.drawing import draw

        draw(chosen).savefig(out, dpi=150)
        if not as_json:
            typer.echo(f"\nPicture: {out}")
    elif not as_json and not can_draw():
        typer.echo(f"\nNo picture: {INSTALL}")


def describe(topology: Topology, parameters: int, tol: float) -> dict[str, Any]:
    """Return the numbers of a topology; infinity is None, as JSON has no number for it."""
    message = wire.max_nbytes(parameters, parameters, VALUE_BYTES)
    steps = topology.steps_to_consensus(tol)
    nbytes = topology.messages_per_step * message
    return {
        "name": topology.name,
        "size": topology.size,
        "period": topology.period,
        "degree": topology.degree,
        "messages_per_step": topology.messages_per_step,
        "bytes_per_step": nbytes,
        "bytes_per_step_busiest": topology.degree * message,
        "is_symmetric": topology.is_symmetric,
        "is_doubly_stochastic": topology.is_doubly_stochastic,
        "spectral_gap": topology.spectral_gap,
        "rho": topology.rho,
        "lambda_2": topology.lambda_2,
        "lambda_min": topology.lambda_min,
        "steps_to_consensus": None if math.isinf(steps) else steps,
        "bytes_to_consensus": None if math.isinf(steps) else steps * nbytes,
    }


def show(rows: list[dict[str, Any]], ranks: int, parameters: int, tol: float) -> None:
    """Print the table, and an allreduce for comparison."""
    typer.echo(f"{ranks} rank{'s' * (ranks != 1)}, {parameters:,} parameters of float32\n")
    heads = tuple(head.format(tol=tol) for head in HEADS)
    cells = [
        (
            Path(row["topology"]).name,  # a matrix in a file
            str(row["period"]),
            str(row["degree"]),
            format_bytes(row["bytes_per_step"]),
            format_bytes(row["bytes_per_step_busiest"]),
            _factor(row["spectral_gap"]),
            _steps(row["steps_to_consensus"]),
        )
        for row in rows
    ]
    print_table(heads, cells)
    if any(row["period"] > 1 for row in rows):
        typer.echo("\nThe gap of a topology that changes is that of a period.")
    nbytes = format_bytes(_allreduce(ranks, parameters))
    typer.echo(f"\nOne dense allreduce, which is exact: {nbytes} per rank.")


def _count(text: str) -> int:
    count = int(parse_count(text))
    if count < 1:
        raise ValueError(f"parameters must be at least 1, got {text!r}")
    return count


def _allreduce(ranks: int, parameters: int) -> float:
    return ring_nbytes(ranks, VALUE_BYTES * parameters)


def _factor(value: float) -> str:
    return "0" if abs(value) < ROUNDING else f"{value:.4g}"


def _steps(value: int | None) -> str:
    return "never" if value is None else str(value)
