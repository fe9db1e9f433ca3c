"""Time every compression method on one core, and measure its size, error and bias.

    python benchmarks/run_compression.py --json FILE

The vectors are Gaussian, and the gradient of a network (see compression/gradients.py). The
error is relative to the vector; the bias is 0 for an unbiased method.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from compressors import ours, peers, steps
from compressors.case import judge_floors, measure
from compressors.gradients import data_folder, gaussian, gradient
from harness.command import SEED, correctness, main

from sparcml.bench.results import Column, header, line

if TYPE_CHECKING:
    from compressors.case import Floor
    from compressors.gradients import Vector
    from harness.stopwatch import Stopwatch

    from sparcml.bench.results import Row

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


def measure_all(size: int, stopwatch: Stopwatch) -> list[Row]:
    """Measure and print all rows on both vectors."""
    for name in peers.missing():
        print(f"# not installed, not compared: {name}")
    network = gradient(size, SEED)
    if network.name != "gradient":
        print(f"# no images in {data_folder()}: the network trains on random images")
    vectors = (gaussian(size, SEED), network)
    return [row for vector in vectors for row in _measure(vector, stopwatch)]


def _measure(vector: Vector, stopwatch: Stopwatch) -> list[Row]:
    print(f"\n# {vector.name}, {vector.values.size} values")
    for text in header(COLUMNS):
        print(text)
    rows: list[Row] = []
    floors: dict[tuple[str, str], Floor] = {}
    for source in (ours, steps, peers):
        for case in source.cases(vector.values):
            rows.append(measure(case, vector, stopwatch))
            print(line(COLUMNS, rows[-1]), flush=True)
            floors[case.name, case.part] = case.floor
    judge_floors(rows, floors, vector.values.size)
    return rows


def verdict(rows: list[Row]) -> int:
    """Print the floors that are missed, and return 1 if a result is wrong."""
    print()
    for row in rows:
        if row["met"] == "no":
            faster = "" if row["faster"] is None else f" and {row['faster']:.0f}x faster"
            name = f"{row['method']} {row['part']}, {row['vector']}"
            print(f"# missed: {name}: {row['copies']:.2f}x memcpy{faster}; {row['floor']}")
    floors = [row["met"] for row in rows if row["met"] is not None]
    if floors:
        print(f"# floors met: {floors.count('yes')} of {len(floors)}")
    else:
        print("# floors are for 16M values: not judged at this size")
    return correctness(rows, "all {} rows satisfy the checks of their method")


if __name__ == "__main__":
    sys.exit(main(__doc__.partition("\n")[0], measure_all, verdict, min_size="4K"))
