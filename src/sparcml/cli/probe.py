"""`sparcml probe`: measure the network of a job's ranks, and keep it for later jobs."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from textwrap import fill
from typing import Annotated

import typer

import sparcml
from sparcml.network.measurement import Measurement
from sparcml.network.probe import probe as measure
from sparcml.network.store import keep
from sparcml.network.store import kept as kept_before
from sparcml.transport import Transport

ALONE = (
    "sparcml probe: a network has at least 2 ranks; start it on several, here with: "
    "sparcml run -n 4 -m sparcml probe (or under mpiexec or torchrun)"
)
POOR = 0.5  # a fit that is off by more is not kept unasked
# Cost: (unit, seconds to unit, meaning)
ROWS = {
    "latency": ("µs", 1e6, "a message, until it is there"),
    "overhead": ("µs", 1e6, "each further one at the same time"),
    "seconds_per_byte": ("ns", 1e9, "a byte"),
    "seconds_per_encoded": ("ns", 1e9, "a sparse entry, coded and decoded"),
    "seconds_per_merged": ("ns", 1e9, "a sparse entry, added"),
    "seconds_per_written": ("ns", 1e9, "a dense value, added"),
}


def probe(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the measurement as JSON.")
    ] = False,
    kept: Annotated[
        bool | None,
        typer.Option(
            "--keep/--no-keep", help="Keep it for later jobs, as is usual if it fits well."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Messages and kernels only, no whole sums.")
    ] = False,
) -> None:
    """Measure the network between the ranks of a job, and how fast they compute."""
    found: list[Measurement] = []

    def once(transport: Transport) -> Measurement:
        with _progress(transport) as progress:
            found.append(measure(transport, quick=quick, progress=progress))
        return found[0]

    try:
        comm = sparcml.world()
    except ValueError as error:  # a setting
        raise typer.BadParameter(str(error)) from None
    with comm:
        comm.recalibrate(once)
    if not found:
        typer.echo(ALONE, err=True)
        raise typer.Exit(2)
    if comm.rank == 0:
        _report(found[0], as_json=as_json, kept=kept)


def _doubt(found: Measurement) -> str:
    """Why it should not be kept unasked, if there is a reason."""
    if found.worst > POOR:
        off = f"times differ by {found.worst:.0%} from what fits them"
        return f"{off}: measure again when nothing else runs"
    before = kept_before(found.engine, found.hosts)
    if before is not None and before.sums and not found.sums:
        return "a probe that also measured sums is kept: leave --quick out"
    return ""


@contextmanager
def _progress(transport: Transport) -> Iterator[Callable[[str], object]]:
    """Rank 0 says what it is at, on a terminal."""
    if transport.rank or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status("measuring") as status:
        yield lambda step: status.update(f"measuring {step}")


def _report(found: Measurement, *, as_json: bool, kept: bool | None) -> None:
    if as_json:
        typer.echo(found.to_json())
    else:
        _show(found)
    if kept is None and (doubt := _doubt(found)):
        typer.echo(f"sparcml probe: not kept, since {doubt}, or use --keep", err=True)
        return
    if kept is False:
        return
    try:
        where = keep(found)
    except OSError as error:
        raise OSError(
            f"sparcml probe: this cannot be kept ({error}); let XDG_CACHE_HOME name a folder "
            f"to write to, or use --no-keep"
        ) from None
    typer.echo(f"kept in {where}: later jobs here choose by it", err=as_json)


def _show(found: Measurement) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    machines = "1 machine" if len(found.hosts) == 1 else f"{len(found.hosts)} machines"
    typer.echo(f"{found.ranks} ranks on {machines}, over {found.engine}\n")
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for heading in ("cost", "of", "measured", "± error", "one pair\nalone"):
        left = heading in ("cost", "of")
        table.add_column(heading, justify="left" if left else "right", no_wrap=True)
    for name, (unit, scale, meaning) in ROWS.items():
        alone = found.alone.get(name)
        table.add_row(
            name,
            meaning,
            f"{getattr(found.network, name) * scale:.3g} {unit}",
            f"{found.errors.get(name, 0.0) * scale:.2g} {unit}",
            "" if alone is None else f"{alone * scale:.3g} {unit}",
        )
    Console(highlight=False).print(table)
    typer.echo(f"\n{_rate(found)}\ntimes of messages fit within {found.misfit:.0%}")
    if found.sums:
        each = ", ".join(f"{name} {off:.0%}" for name, off in found.sums.items())
        typer.echo(fill(f"times of sums fit within {each}", 78))


def _rate(found: Measurement) -> str:
    rates = [found.network.seconds_per_byte, found.alone.get("seconds_per_byte", 0.0)]
    each, alone = (f"{1e-6 / byte:.0f} MB/s" if byte else "no limit" for byte in rates)
    return f"{each} a rank with all sending, {alone} for one pair alone"
