"""Time every kernel on one core against memcpy or another library, and check its result.

python benchmarks/run_kernels.py --json FILE
"""

from __future__ import annotations

import sys
from itertools import chain
from typing import TYPE_CHECKING

import kernels as families
import numpy as np
from harness.command import SEED, correctness, main
from kernels.case import measure

from sparcml import kernels
from sparcml.bench.results import Column, header, line

if TYPE_CHECKING:
    from harness.stopwatch import Stopwatch

    from sparcml.bench.results import Row

COLUMNS = (
    Column("kernel", "kernel", "", 26),
    Column("isa", "isa", "", 6),
    Column("size", "size", "(entries)", 9, "d"),
    Column("median", "median", "(us)", 9, ".1f"),
    Column("q1", "q1", "(us)", 9, ".1f"),
    Column("q3", "q3", "(us)", 9, ".1f"),
    Column("each", "ns/entry", "", 8, ".3f"),
    Column("rate", "throughput", "", 10, ".2f"),
    Column("unit", "", "", 4),
    Column("entry_bytes", "encoded", "(B/entry)", 9, ".2f"),
    Column("over_peer", "time/peer", "", 9, ".2f"),
    Column("peer", "peer", "", 13),
    Column("floor", "floor", "", 7),
    Column("met", "met", "", 3),
    Column("wrong", "#wrong", "", 6, "d"),
)


def measure_all(size: int, stopwatch: Stopwatch) -> list[Row]:
    """Measure and print all cases with each instruction set."""
    rng = np.random.default_rng(SEED)
    rows: list[Row] = []
    active = kernels.isa()
    for text in header(COLUMNS):
        print(text)
    try:
        for case in chain.from_iterable(f.cases(size, rng) for f in families.FAMILIES):
            for isa in kernels.isas():
                kernels.use_isa(isa)
                rows.append(measure(case, isa, stopwatch))
                print(line(COLUMNS, rows[-1]), flush=True)
    finally:
        kernels.use_isa(active)
    return rows


def verdict(rows: list[Row]) -> int:
    """Print how many floors are met, and return 1 if a result is wrong."""
    missed = sum(row["met"] == "no" for row in rows)
    floors = sum(row["met"] is not None for row in rows)
    print(f"# floors met: {floors - missed} of {floors}")
    return correctness(rows, "all {} rows equal the reference")


if __name__ == "__main__":
    sys.exit(main(__doc__.partition("\n")[0], measure_all, verdict, min_size="16K"))
