"""Run the jobs of benchmarks/run_training.py that have no saved row yet.

    python benchmarks/all_training.py                     # all; about two hours
    python benchmarks/all_training.py --only 'steps atis' --seconds 200

It can be interrupted at any time: each job saves its row when it is done.
"""

from __future__ import annotations

import argparse
import datetime as dt
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from training.kept import LEAST, rows_of
from training.roster import CHECKED, RANKS, SEEDS, STEPPED, TRAINED, WIDE, seeds

HERE = Path(__file__).resolve().parent


class Job(NamedTuple):
    """One row."""

    part: str
    network: str
    method: str
    ranks: int
    seed: int = 0
    link: str = "none"

    def __str__(self) -> str:
        where = f"seed {self.seed}" if self.part == "accuracy" else self.link
        return f"{self.part} {self.network} {self.method} {self.ranks} {where}"

    @property
    def command(self) -> list[str]:
        """Command that measures the row."""
        behind = [] if self.link == "none" else ["--network", self.link]
        words = [sys.executable, "-m", "sparcml", "run", "--engine", "torch"]
        words += ["-n", str(self.ranks), *behind, str(HERE / "run_training.py")]
        words += [self.part, self.network, self.method, "--seed", str(self.seed)]
        return [*words, "--network", self.link]


def jobs() -> list[Job]:
    """Return all jobs, the most important ones first."""
    found = [
        Job("steps", WIDE, ",".join(together), ranks, link=link)
        for ranks, jobs_of in STEPPED.items()
        for together in jobs_of
        for link in ("100mbit", "1gbit")
    ]
    found += [
        Job("accuracy", network, method, RANKS, seed)
        for seed in SEEDS
        for network, methods in TRAINED.items()
        for method in methods
        if seed in seeds(network, method)
    ]
    found += [
        Job("steps", network, ",".join(methods), RANKS, link=link)
        for link in ("1gbit", "100mbit")
        for network, methods in TRAINED.items()
    ]
    found += [
        Job("epoch", network, method, RANKS, link=link) for network, method, link in CHECKED
    ]
    return found


def done(job: Job) -> bool:
    """Return whether a saved row exists."""
    date = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d")
    rows = rows_of(HERE / "results" / f"{date}-training-{job.part}.json")
    names = ["network", "ranks", "seed" if job.part == "accuracy" else "link"]
    enough = {
        row["method"]
        for row in rows
        if all(row[name] == getattr(job, name) for name in names)
        and len(row.get("steps", range(LEAST))) >= LEAST
    }
    return set(job.method.split(",")) <= enough


def main() -> None:
    """Run the requested jobs that are not done."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--only", default="", help="pattern of the jobs to run")
    options.add_argument(
        "--seconds", type=float, help="start no job after this many seconds"
    )
    options.add_argument("--list", action="store_true", help="only print the jobs")
    chosen = options.parse_args()
    # A job that is under way ends with this program, not after it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    start = time.monotonic()
    for job in jobs():
        if not re.search(chosen.only, str(job)) or done(job):
            continue
        if chosen.list:
            print(job)
            continue
        if chosen.seconds is not None and time.monotonic() - start > chosen.seconds:
            break
        subprocess.run(job.command, check=True)


if __name__ == "__main__":
    main()
