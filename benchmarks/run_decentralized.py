"""Run the experiments behind docs/decentralized.md, and claims 30 and 31.

    python benchmarks/run_decentralized.py            # all: about ten minutes on one core
    python benchmarks/run_decentralized.py rate map   # these parts again, the others as saved

Rows of finished cases are in build/decentralized.json until all are done; an interrupted run
continues there. `make docs` then generates the page.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

# Ranks are simulated in one thread: a matrix product must not use all cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from decentralized.cases import CASES, MEASURES
from rich.console import Console
from rich.progress import track
from tables import newest

from sparcml.bench.results import write_json
from sparcml.environment import describe

RESULTS = Path(__file__).resolve().parent / "results"
UNFINISHED = RESULTS.parents[1] / "build" / "decentralized.json"
NAME = "decentralized"
SEED = 1

Rows = dict[str, list[dict[str, Any]]]


def chosen(words: list[str]) -> set[str]:
    """Return the parts with these names; all without names."""
    if wrong := [word for word in words if word not in MEASURES]:
        raise SystemExit(
            f"run_decentralized: no part {wrong[0]!r}; there are {', '.join(MEASURES)}"
        )
    return set(words or MEASURES)


def saved(parts: set[str], results: Path) -> Rows:
    """Return the rows by case of the newest file, for parts that are not measured again."""
    found = newest(NAME, results)
    rows = [] if found is None else found["rows"]
    return {
        key: mine
        for part, case in CASES
        if part not in parts
        for key in [f"{part} {case}"]
        if (mine := [row for row in rows if row["case"] == key])
    }


def measured(parts: set[str], results: Path, unfinished: Path, console: Console) -> Rows:
    """Return the rows of all cases, and save them after each case."""
    done = saved(parts, results)
    if unfinished.exists():
        done |= json.loads(unfinished.read_text())
    unfinished.parent.mkdir(parents=True, exist_ok=True)
    for part, case in track(CASES, "decentralized", console=console):
        key = f"{part} {case}"
        if key not in done:
            start = time.process_time()
            rows = MEASURES[part](*case)
            cpu = round(time.process_time() - start, 2)
            done[key] = [{"case": key, "cpu": cpu, **row} for row in rows]
            console.print(f"  {key}: {cpu:.1f} s", highlight=False)
            new = unfinished.with_suffix(".new")
            new.write_text(json.dumps(done))
            new.replace(unfinished)
    return {f"{part} {case}": done[f"{part} {case}"] for part, case in CASES}


def main() -> None:
    """Run the requested parts."""
    facts = describe(" ".join(sys.argv[1:]), SEED)
    done = measured(chosen(sys.argv[1:]), RESULTS, UNFINISHED, Console())
    path = RESULTS / f"{facts['date']}-{NAME}.json"
    write_json(path, facts, [row for rows in done.values() for row in rows])
    UNFINISHED.unlink()


if __name__ == "__main__":
    main()
