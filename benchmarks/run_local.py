"""Train the networks of benchmarks/accuracy with local methods, for docs/local.md.

    python benchmarks/run_local.py                       # all jobs without a saved row
    python benchmarks/run_local.py --only 'gpt DiLoCo' --seconds 600
    python benchmarks/run_local.py --list
    python benchmarks/run_local.py --pilots              # the runs that settings were chosen from

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

from local import forms, pilots  # noqa: E402
from local.forms import SYNCHRONOUS, Job  # noqa: E402
from local.pilots import PILOTS  # noqa: E402

from sparcml.bench.results import write_json  # noqa: E402
from sparcml.environment import describe  # noqa: E402

RESULTS = HERE / "results"
KEY = (
    "network", "settings", "method", "every", "changes", "workers", "synchronous", "seed",
)  # fmt: skip

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
    options.add_argument("--pilots", action="store_true", help="run the pilots")
    options.add_argument("--reverse", action="store_true", help="the last job first")
    options.add_argument(
        "--starts", type=Path, help="folder that keeps the ends of synchronous starts"
    )
    chosen = options.parse_args()
    source, name = (pilots, "local-pilots") if chosen.pilots else (forms, "local")
    date = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d")
    path = chosen.json or RESULTS / f"{date}-{name}.json"
    wanted = [job for job in source.jobs() if re.search(chosen.only, str(job))]
    done = {tuple(row[k] for k in KEY) for row in _rows(path)}
    missing = [job for job in wanted if _key(job) not in done]
    if chosen.list:
        print("\n".join(map(str, missing)))
        return
    start = time.monotonic()
    for job in reversed(missing) if chosen.reverse else missing:
        if chosen.seconds is not None and time.monotonic() - start > chosen.seconds:
            break
        row = run(job, chosen.starts)
        _save(path, row)
        result = (
            "diverged" if row["score"] is None else f"{row['metric']} {row['score']:.4f}"
        )
        print(
            f"{job}: {result}, {row['sent'] / 1e6:,.1f} MB, {row['seconds']:.0f} s",
            flush=True,
        )


def run(job: Job, starts: Path | None = None) -> Row:
    """Run one job and return its row."""
    from accuracy.train import train as train_synchronous
    from local.train import train
    from local.workloads import WORKLOADS

    about, form, work = _about(job), PILOTS[job.form], WORKLOADS[job.network]
    if job.form.startswith(SYNCHRONOUS):
        rate = form.inner_lr * work.learning_rate
        return {**about, **train_synchronous(work, "dense", 1, rate, job.seed)}
    saved = None
    if starts is not None and about["synchronous"]:
        starts.mkdir(parents=True, exist_ok=True)
        saved = starts / f"{job.network}-{job.workers}-{about['synchronous']}-{job.seed}.pt"
    found = train(work, form, job.every, job.workers, job.seed, about["synchronous"], saved)
    return {**about, **found}


def _about(job: Job) -> Row:
    from local.workloads import WORKLOADS

    form, work = PILOTS[job.form], WORKLOADS[job.network]
    return {
        "network": job.network,
        "settings": work.settings,
        "form": job.form,
        "method": str(form.method(job.every)),
        "changes": form.changes(),
        "every": job.every,
        "workers": job.workers,
        "synchronous": round(job.start * work.steps),
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
