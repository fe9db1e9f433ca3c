"""Table 2 of the paper: linear models on slow links.

    sparcml run -n 8 --network 1gbit benchmarks/run_table2.py --json FILE

Logistic regression and SVM train on the data of `benchmarks/table2`, the same program with
four types of allreduce: sparse, MPI's allreduce of dense vectors, the same of the active columns
only, and dense vectors with a single master. Data are generated before timing, and the runs
verify that all types lead to the same weights.
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
    """Run on each rank; the first one reports."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--json", type=Path)
    options.add_argument("--link", default="1gbit", help="link bandwidth")
    options.add_argument("--data", default=",".join(DATA), help="names of the data sets")
    options.add_argument("--sums", default=",".join(SUMS), help="types of allreduce")
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
    """Print a row."""
    return (
        "{data} {loss} {sums}: step {step:.4f} s, communication {communicating:.4f} s, "
        "CPU {processors:.4f} s, wire {bound:.4f} s, {algorithm}, difference {apart:.1e}"
    ).format(**row)


if __name__ == "__main__":
    main()
