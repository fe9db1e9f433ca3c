"""Table 2 of the paper as it can be run here: linear models behind slow links.

    sparcml run -n 8 --network 1gbit benchmarks/run_table2.py --json FILE

Logistic regression and SVM learn from the data of `benchmarks/table2`, the same program with
four kinds of sums: sparse ones, MPI's allreduce of dense vectors, the same of the columns in
use alone, and dense vectors that a single master adds. Data are generated before the clock
starts, and that all lead to the same weights is checked in the same run.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from table2.baselines import Plain
from table2.data import DATA
from table2.measure import SUMS, Runner

import sparcml
from sparcml.bench.results import write_json
from sparcml.environment import describe
from sparcml.network.presets import link_bandwidth

PASSES = {"sparse": 8, "dense": 4, "dense of used columns": 4, "single master": 1}
LOSSES = ("logistic", "hinge")


def main() -> None:
    """On each rank; the first one reports."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--json", type=Path)
    options.add_argument("--link", default="1gbit", help="what the network is")
    options.add_argument("--data", default=",".join(DATA), help="which, by name")
    options.add_argument("--sums", default=",".join(SUMS), help="which kinds")
    chosen = options.parse_args()
    link = link_bandwidth(chosen.link) / 8
    rows = []
    with sparcml.world() as comm:
        plain = Plain()
        for name in chosen.data.split(","):
            runner = Runner(comm, DATA[name], link, plain)
            for loss in LOSSES:
                for sums in chosen.sums.split(","):
                    rows.append(runner.measure(loss, sums, PASSES[sums]))
                    if comm.rank == 0:
                        print(line(rows[-1]), flush=True)
        if comm.rank == 0 and chosen.json:
            text = f"--link {chosen.link} --data {chosen.data} --sums '{chosen.sums}'"
            write_json(chosen.json, describe(text, 0), rows)


def line(row: dict[str, Any]) -> str:
    """A row for people who wait."""
    return (
        "{data} {loss} {sums}: a step {step:.4f} s, communicating {communicating:.4f} s, "
        "processors {processors:.4f} s, wire {bound:.4f} s, {algorithm}, apart {apart:.1e}"
    ).format(**row)


if __name__ == "__main__":
    main()
