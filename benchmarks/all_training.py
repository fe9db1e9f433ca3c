"""Run the jobs of benchmarks/run_training.py that have no saved row yet.

    python benchmarks/all_training.py                     # all; about an hour
    python benchmarks/all_training.py --only atis --seconds 200

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
from training.roster import ALTERNATING, RANKS, STEPPED, WIDE

HERE = Path(__file__).resolve().parent


class Job(NamedTuple):
    """Steps of some methods in turn, on one link bandwidth.

    Attributes:
        network: Name of the network.
        methods: Names of the methods, separated by commas.
        ranks: World size.
        link: Link bandwidth.
    """

    network: str
    methods: str
    ranks: int
    link: str

    def __str__(self) -> str:
        return f"{self.network} {self.methods} {self.ranks} {self.link}"

    @property
    def command(self) -> list[str]:
        """Command that measures the rows."""
        words = [sys.executable, "-m", "sparcml", "run", "--engine", "torch"]
        words += ["-n", str(self.ranks), "--network", self.link]
        words += [str(HERE / "run_training.py"), self.network, self.methods]
        return [*words, "--network", self.link]


def jobs() -> list[Job]:
    """Return all jobs, the most important ones first."""
    found = [
        Job(WIDE, ",".join(together), ranks, link)
        for ranks, jobs_of in STEPPED.items()
        for together in jobs_of
        for link in ("100mbit", "1gbit")
    ]
    found += [
        Job(network, ",".join(methods), RANKS, link)
        for link in ("1gbit", "100mbit")
        for network, methods in ALTERNATING.items()
    ]
    return found


def done(job: Job) -> bool:
    """Return whether all methods have rows with enough steps."""
    date = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d")
    rows = rows_of(HERE / "results" / f"{date}-training-steps.json")
    names = ("network", "ranks", "link")
    enough = {
        row["method"]
        for row in rows
        if all(row[name] == getattr(job, name) for name in names)
        and len(row["steps"]) >= LEAST
    }
    return set(job.methods.split(",")) <= enough


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
