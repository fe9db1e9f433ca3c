"""`sparcml bench compress`: every way to make a gradient small, and what it costs.

Times are those of one core. The last columns say what is lost: the error relative to the
vector, and the bias, which is 0 for what is right on average.
"""

from pathlib import Path
from typing import Annotated

import typer

from sparcml.cli.bench import compress_ours, compress_peers, compress_steps
from sparcml.cli.bench.common import (
    QUICK,
    Clock,
    Column,
    Row,
    check_json,
    environment,
    header,
    line,
    parse_size,
    write_json,
)
from sparcml.cli.bench.compress_case import Floor, measure, settle
from sparcml.cli.bench.gradients import Vector, data_folder, gaussian, gradient

SEED = 1
LEAST = 1 << 12

COLUMNS = (
    Column("method", "method", "", 48),
    Column("part", "part", "", 6),
    Column("ns", "time", "(ns/value)", 10, ".3f"),
    Column("q1", "q1", "(us)", 9, ".0f"),
    Column("q3", "q3", "(us)", 9, ".0f"),
    Column("copies", "memcpy", "(times)", 7, ".2f"),
    Column("bits", "size", "(bit/value)", 11, ".3f"),
    Column("error", "error", "(rel.)", 7, ".4f"),
    Column("bias", "bias", "(rel.)", 8, ".4f"),
    Column("wrong", "#wrong", "", 6, "d"),
)


def compress(
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the rows there, too.")
    ] = None,
    size: Annotated[str, typer.Option(help="Values of the vectors.")] = "16M",
    quick: Annotated[
        bool, typer.Option("--quick", help="A few runs of each, for a first look.")
    ] = False,
) -> None:
    """Time and judge compression on Gaussians and on a real network's gradient."""
    values = parse_size(size)
    if values < LEAST:
        raise typer.BadParameter(f"size must be at least 4K, got {size!r}")
    check_json(json)
    clock = QUICK if quick else Clock()
    facts = environment(f"--size {size}{' --quick' * quick}", SEED)
    for name, value in facts.items():
        typer.echo(f"# {name}: {value}")
    for name in compress_peers.missing():
        typer.echo(f"# not here, so not compared: {name}")
    rows = [row for vector in _vectors(values) for row in _table(vector, clock)]
    if json:
        write_json(json, facts, rows)
    raise typer.Exit(_verdict(rows))


def _vectors(size: int) -> list[Vector]:
    real = gradient(size, SEED)
    if real.name != "gradient":
        typer.echo(f"# no images in {data_folder()}: the network learns from random ones")
    return [gaussian(size, SEED), real]


def _table(vector: Vector, clock: Clock) -> list[Row]:
    typer.echo(f"\n# {vector.name}, {vector.values.size} values")
    for text in header(COLUMNS):
        typer.echo(text)
    rows: list[Row] = []
    floors: dict[tuple[str, str], Floor] = {}
    for source in (compress_ours, compress_steps, compress_peers):
        for way in source.ways(vector.values):
            rows.append(measure(way, vector, clock))
            typer.echo(line(COLUMNS, rows[-1]))
            floors[way.name, way.part] = way.floor
    settle(rows, floors)
    return rows


def _verdict(rows: list[Row]) -> int:
    typer.echo("")
    for row in rows:
        if row["met"] == "no":
            faster = "" if row["faster"] is None else f" and {row['faster']:.0f}x faster"
            name = f"{row['method']} {row['part']}, {row['vector']}"
            typer.echo(
                f"# missed: {name}: {row['copies']:.2f}x memcpy{faster}; {row['floor']}"
            )
    floors = [row["met"] for row in rows if row["met"] is not None]
    typer.echo(
        f"# floors met (meant for 16M values): {floors.count('yes')} of {len(floors)}"
    )
    if wrong := [row for row in rows if row["wrong"]]:
        typer.echo(f"# FAILED: wrong results in {len(wrong)} of {len(rows)} rows")
        return 1
    typer.echo(f"# passed: all {len(rows)} rows keep the rules of their method")
    return 0
