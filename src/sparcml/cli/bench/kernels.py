"""`sparcml bench kernels`: every inner loop against a copy of memory or a peer."""

from itertools import chain
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from sparcml import kernels as loops
from sparcml.cli.bench import (
    kernel_bits,
    kernel_coding,
    kernel_dense,
    kernel_linear,
    kernel_merges,
    kernel_quantize,
    kernel_select,
)
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
    quantile,
    write_json,
)
from sparcml.cli.bench.kernel_case import Case

SEED = 1
SUBJECTS = (
    kernel_merges,
    kernel_dense,
    kernel_linear,
    kernel_coding,
    kernel_select,
    kernel_quantize,
    kernel_bits,
)

COLUMNS = (
    Column("kernel", "kernel", "", 26),
    Column("isa", "isa", "", 6),
    Column("size", "size", "(entries)", 9, "d"),
    Column("median", "median", "(us)", 9, ".1f"),
    Column("q1", "q1", "(us)", 9, ".1f"),
    Column("q3", "q3", "(us)", 9, ".1f"),
    Column("each", "each", "(ns)", 7, ".3f"),
    Column("rate", "rate", "", 7, ".2f"),
    Column("unit", "", "", 4),
    Column("entry_bytes", "coded", "(B/entry)", 9, ".2f"),
    Column("over_peer", "time/peer", "", 9, ".2f"),
    Column("peer", "peer", "", 13),
    Column("floor", "floor", "", 7),
    Column("met", "met", "", 3),
    Column("wrong", "#wrong", "", 6, "d"),
)


def kernels(
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the rows there, too.")
    ] = None,
    size: Annotated[
        str, typer.Option(help="Values of the dense vector; streams have a 16th.")
    ] = "16M",
    quick: Annotated[
        bool, typer.Option("--quick", help="A few runs of each, for a first look.")
    ] = False,
) -> None:
    """Time the inner loops on one core, and check what they compute."""
    values = parse_size(size)
    if values < 1 << 14:
        raise typer.BadParameter(f"size must be at least 16K, got {size!r}")
    check_json(json)
    clock = QUICK if quick else Clock()
    facts = environment(f"--size {size}{' --quick' * quick}", SEED)
    for name, value in facts.items():
        typer.echo(f"# {name}: {value}")
    rows = _measure(values, clock)
    if json:
        write_json(json, facts, rows)
    raise typer.Exit(_verdict(rows))


def _measure(size: int, clock: Clock) -> list[Row]:
    rng = np.random.default_rng(SEED)
    rows: list[Row] = []
    active = loops.isa()
    for text in header(COLUMNS):
        typer.echo(text)
    try:
        for case in chain.from_iterable(s.cases(size, rng) for s in SUBJECTS):
            for isa in loops.isas():
                loops.use_isa(isa)
                rows.append(measure_case(case, isa, clock))
                typer.echo(line(COLUMNS, rows[-1]))
    finally:
        loops.use_isa(active)
    return rows


def measure_case(case: Case, isa: str, clock: Clock) -> Row:
    """Time a case beside its peer, then check its output."""
    ours, *peers = clock.side_by_side(case.run, *filter(None, [case.run_peer]))
    median = quantile(ours, 0.5)
    over_peer = median / quantile(peers[0], 0.5) if peers else None
    rate = case.work / median / (1.0 if case.unit == "M/s" else 1e3)
    # Other instruction sets are there for other machines, and have no floor.
    floor = case.floor if isa == loops.isas()[0] else None
    met = None if floor is None else "yes" if floor.met(rate, over_peer) else "no"
    return {
        "kernel": case.what,
        "isa": isa,
        "size": case.size,
        "median": median,
        "q1": quantile(ours, 0.25),
        "q3": quantile(ours, 0.75),
        "each": 1e3 * median / case.size,
        "rate": rate,
        "unit": case.unit,
        "entry_bytes": case.entry_bytes,
        "over_peer": over_peer,
        "peer": case.peer if peers else f"{case.peer} missing",
        "floor": None if floor is None else str(floor),
        "met": met,
        "wrong": case.wrong(),
    }


def _verdict(rows: list[Row]) -> int:
    wrong = [row["kernel"] for row in rows if row["wrong"]]
    missed = sum(row["met"] == "no" for row in rows)
    floors = sum(row["met"] is not None for row in rows)
    typer.echo(f"# floors met: {floors - missed} of {floors}")
    if wrong:
        typer.echo(f"# FAILED: wrong results in {len(wrong)} of {len(rows)} rows")
        return 1
    typer.echo(f"# passed: all {len(rows)} rows are what the reference computes")
    return 0
