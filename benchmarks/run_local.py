"""Train the networks of benchmarks/accuracy with local methods, for docs/local.md.

    python benchmarks/run_local.py                       # all jobs without a saved row
    python benchmarks/run_local.py --only 'gpt DiLoCo' --seconds 600
    python benchmarks/run_local.py --list

It can be interrupted at any time: the row of each job is saved when it ends.
"""

from __future__ import annotations

import argparse
import datetime as dt
import fcntl
import json
import os
import re
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported

from local.forms import FORMS, Job, jobs  # noqa: E402

from sparcml.bench.results import write_json  # noqa: E402
from sparcml.environment import describe  # noqa: E402

RESULTS = HERE / "results"
KEY = ("network", "settings", "form", "method", "workers", "synchronous", "seed")

Row = dict[str, Any]


def main() -> None:
    """Run the requested jobs that are not done."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--only", default="", help="pattern of the jobs to run")
    options.add_argument("--seconds", type=float, help="start no job after this time")
    options.add_argument("--list", action="store_true", help="only print the jobs")
    options.add_argument(
        "--json", type=Path, help="file of the rows; default: that of today"
    )
    chosen = options.parse_args()
    date = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d")
    path = chosen.json or RESULTS / f"{date}-local.json"
    wanted = [job for job in jobs() if re.search(chosen.only, str(job))]
    done = {tuple(row.get(k, 0) for k in KEY) for row in _rows(path)}
    missing = [job for job in wanted if _key(job) not in done]
    if chosen.list:
        print("\n".join(map(str, missing)))
        return
    start = time.monotonic()
    for job in missing:
        if chosen.seconds is not None and time.monotonic() - start > chosen.seconds:
            break
        row = run(job)
        _save(path, row)
        result = (
            "diverged" if row["score"] is None else f"{row['metric']} {row['score']:.4f}"
        )
        print(
            f"{job}: {result}, {row['sent'] / 1e6:,.1f} MB, {row['seconds']:.0f} s",
            flush=True,
        )


def run(job: Job) -> Row:
    """Run one job and return its row."""
    from accuracy.workloads import WORKLOADS
    from local.train import train

    about = _about(job)
    method, work = FORMS[job.form](job.every), WORKLOADS[job.network]
    found = train(work, method, job.workers, job.seed, about["synchronous"])
    return {**about, **found}


def _about(job: Job) -> Row:
    from accuracy.workloads import WORKLOADS

    return {
        "network": job.network,
        "settings": WORKLOADS[job.network].settings,
        "form": job.form,
        "method": str(FORMS[job.form](job.every)),
        "every": job.every,
        "workers": job.workers,
        "synchronous": round(job.start * WORKLOADS[job.network].steps),
        "seed": job.seed,
    }


def _key(job: Job) -> tuple[Any, ...]:
    about = _about(job)
    return tuple(about[k] for k in KEY)


def _rows(path: Path) -> list[Row]:
    rows: list[Row] = json.loads(path.read_text())["rows"] if path.exists() else []
    return rows


def _save(path: Path, row: Row) -> None:
    """Add a row to the file; several processes may run different jobs."""
    import torch

    new = path.with_suffix(".new")
    with path.parent.joinpath("unfinished-local.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        write_json(new, describe("", 0, torch=torch.__version__), [*_rows(path), row])
        new.replace(path)


if __name__ == "__main__":
    main()
