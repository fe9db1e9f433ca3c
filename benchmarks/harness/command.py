"""Arguments, printed environment and exit code of a benchmark on one core."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from harness.stopwatch import QUICK, Stopwatch
from sparcml.bench.results import write_json
from sparcml.environment import describe
from sparcml.units import parse_size

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sparcml.bench.results import Row

SEED = 1
SIZE = "16M"


def main(
    description: str,
    measure: Callable[[int, Stopwatch], list[Row]],
    verdict: Callable[[list[Row]], int],
    *,
    min_size: str,
    arguments: Sequence[str] | None = None,
) -> int:
    """Measure rows, write them, and return the exit code.

    Args:
        description: First line of the help.
        measure: Measures and prints all rows for vectors of a size.
        verdict: Prints a summary of the rows and returns the exit code.
        min_size: Smallest size.
        arguments: The command line, by default that of the process.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", type=Path, metavar="FILE", help="JSON file for the rows")
    parser.add_argument("--size", default=SIZE, help="size of the dense vectors in values")
    parser.add_argument(
        "--quick", action="store_true", help="only a few runs per row, for a first look"
    )
    options = parser.parse_args(arguments)
    try:
        size = parse_size(options.size)
    except ValueError as error:
        parser.error(str(error))
    if size < parse_size(min_size):
        parser.error(f"size must be at least {min_size}, got {options.size!r}")
    if options.json is not None and not options.json.absolute().parent.is_dir():
        parser.error(f"no folder for {str(options.json)!r}")
    facts = describe(f"--size {options.size}{' --quick' * options.quick}", SEED)
    for name, value in facts.items():
        print(f"# {name}: {value}")
    rows = measure(size, QUICK if options.quick else Stopwatch())
    if options.json is not None:
        write_json(options.json, facts, rows)
    return verdict(rows)


def correctness(rows: list[Row], passed: str) -> int:
    """Print whether all results are correct, and return the exit code."""
    if wrong := sum(bool(row["wrong"]) for row in rows):
        print(f"# FAILED: wrong results in {wrong} of {len(rows)} rows")
        return 1
    print(f"# passed: {passed.format(len(rows))}")
    return 0
