"""Benchmarks: one subject a file."""

import typer

from sparcml.cli.bench.allreduce import allreduce
from sparcml.cli.bench.kernels import kernels

bench = typer.Typer(help="Measure, and check what was measured.", no_args_is_help=True)
bench.command()(kernels)
bench.command()(allreduce)
