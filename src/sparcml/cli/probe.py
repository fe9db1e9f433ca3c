"""`sparcml probe`: measure the network of a job's ranks and save it for later jobs."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from textwrap import fill
from typing import Annotated

import typer

import sparcml
from sparcml.cli.console import print_table
from sparcml.network import store
from sparcml.network.probe import probe as measure
from sparcml.network.store import Measurement
from sparcml.transport import Transport

SINGLE_RANK = (
    "sparcml probe: a network has at least 2 ranks; start several, here with: "
    "sparcml run -n 4 -m sparcml probe (or under mpiexec or torchrun)"
)
MAX_MISFIT = 0.5  # of a measurement that is saved without --save
# Cost: (unit, units per second, name in the table)
COSTS = {
    "latency": ("µs", 1e6, "latency per message"),
    "overhead": ("µs", 1e6, "overhead per simultaneous message"),
    "seconds_per_byte": ("ns", 1e9, "time per byte"),
    "seconds_per_encoded": ("ns", 1e9, "encode and decode a sparse entry"),
    "seconds_per_merged": ("ns", 1e9, "merge a sparse entry"),
    "seconds_per_written": ("ns", 1e9, "add a dense value"),
}


def probe(
    as_json: Annotated[
        bool, typer.Option("--json", help="Output of the measurement as JSON.")
    ] = False,
    save: Annotated[
        bool | None,
        typer.Option(
            "--save/--no-save",
            help="Storage of the measurement for later jobs. Default: if it fits well.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Messages and kernels only, no allreduces.")
    ] = False,
) -> None:
    """Measure the network between the ranks of a job, and their speed."""
    measurements: list[Measurement] = []

    def measure_once(transport: Transport) -> Measurement:
        with _progress(transport) as progress:
            measurements.append(measure(transport, quick=quick, progress=progress))
        return measurements[0]

    try:
        comm = sparcml.world()
    except ValueError as error:  # an environment variable
        raise typer.BadParameter(str(error)) from None
    with comm:
        comm.recalibrate(measure_once)
    if not measurements:
        typer.echo(SINGLE_RANK, err=True)
        raise typer.Exit(2)
    if comm.rank == 0:
        _report(measurements[0], as_json=as_json, save=save)


@contextmanager
def _progress(transport: Transport) -> Iterator[Callable[[str], object]]:
    """Show the current part of the measurement on rank 0, if stderr is a terminal."""
    if transport.rank or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status("measuring") as status:
        yield lambda part: status.update(f"measuring {part}")


def _report(measurement: Measurement, *, as_json: bool, save: bool | None) -> None:
    if as_json:
        typer.echo(measurement.to_json())
    else:
        _show(measurement)
    if save is None and (doubt := _doubt(measurement)):
        typer.echo(f"sparcml probe: not saved: {doubt}, or use --save", err=True)
        return
    if save is False:
        return
    try:
        path = store.save(measurement)
    except OSError as error:
        raise OSError(
            f"sparcml probe: the measurement cannot be saved ({error}); set XDG_CACHE_HOME "
            f"to a writable folder, or use --no-save"
        ) from None
    typer.echo(f"saved in {path}: later jobs here use it", err=as_json)


def _doubt(measurement: Measurement) -> str:
    """Return why the measurement should not be saved by default, or an empty text."""
    if measurement.max_misfit > MAX_MISFIT:
        misfit = f"times differ by {measurement.max_misfit:.0%} from the fitted model"
        return f"{misfit}; measure again on an idle machine"
    saved = store.load(measurement.engine, measurement.hosts)
    if saved is not None and saved.allreduce_misfits and not measurement.allreduce_misfits:
        return "the saved measurement includes allreduces; omit --quick"
    return ""


def _show(measurement: Measurement) -> None:
    count = len(measurement.hosts)
    machines = "1 machine" if count == 1 else f"{count} machines"
    typer.echo(f"{measurement.ranks} ranks on {machines}, over {measurement.engine}\n")
    rows = []
    for name, (unit, scale, label) in COSTS.items():
        exclusive = measurement.exclusive.get(name)
        cells = (
            f"{getattr(measurement.network, name) * scale:.3g} {unit}",
            f"{measurement.errors.get(name, 0.0) * scale:.2g} {unit}",
            "" if exclusive is None else f"{exclusive * scale:.3g} {unit}",
        )
        rows.append((label, *cells))
    print_table(("cost", "measured", "± error", "one pair,\nexclusive"), rows)
    typer.echo(f"\n{_throughput(measurement)}")
    typer.echo(f"times of messages fit within {measurement.misfit:.0%}")
    if misfits := measurement.allreduce_misfits:
        each = ", ".join(f"{name} {misfit:.0%}" for name, misfit in misfits.items())
        typer.echo(fill(f"times of allreduces fit within {each}", 78))


def _throughput(measurement: Measurement) -> str:
    costs = [
        measurement.network.seconds_per_byte,
        measurement.exclusive.get("seconds_per_byte", 0.0),
    ]
    each, pair = (f"{1e-6 / cost:.0f} MB/s" if cost else "no limit" for cost in costs)
    return f"{each} per rank with all ranks sending, {pair} for one pair"
