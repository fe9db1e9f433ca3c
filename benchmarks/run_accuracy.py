"""Train the networks of benchmarks/accuracy with all methods, and compare them with dense runs.

    python benchmarks/run_accuracy.py                  # all jobs without a saved row
    python benchmarks/run_accuracy.py --only 'gpt (qsgd4|topk1) 8' --seconds 600
    python benchmarks/run_accuracy.py --rates          # dense runs at all learning rates
    python benchmarks/run_accuracy.py --table          # judge the saved rows

It can be interrupted at any time: the row of each job is saved when it ends. Each job has its own
process with one thread per rank and one of torch; --jobs of them run at once.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import signal
import sys
import time
import traceback
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported
os.environ["PYTHONPATH"] = f"{HERE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"

from accuracy import jobs as plan  # noqa: E402
from accuracy.judge import judge, table  # noqa: E402
from accuracy.saved import RESULTS, load, save  # noqa: E402

if TYPE_CHECKING:
    from accuracy.jobs import Job, Row

FORKS = multiprocessing.get_context("forkserver")  # torch is imported once
PRELOADED = ["numpy", "torch", "torch._dynamo", "accuracy.train", "accuracy.workloads"]


def main() -> None:
    """Run the requested jobs that are not done."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--only", default="", help="pattern of the jobs to run")
    options.add_argument("--jobs", type=int, default=2, help="number of jobs at once")
    options.add_argument("--seconds", type=float, help="start no job after this time")
    options.add_argument("--rates", action="store_true", help="all dense learning rates")
    options.add_argument("--again", action="store_true", help="repeat jobs that are done")
    options.add_argument("--list", action="store_true", help="only print the jobs")
    options.add_argument("--table", action="store_true", help="only judge the saved rows")
    options.add_argument("--results", type=Path, default=RESULTS)
    chosen = options.parse_args()
    if chosen.table:
        print(table([j for j in judge(load(chosen.results)) if _wanted(chosen.only, j)]))
        return
    every = plan.rate_jobs() if chosen.rates else plan.jobs()
    wanted = [job for job in every if re.search(chosen.only, str(job))]
    done = set() if chosen.again else {plan.key_of(row) for row in load(chosen.results)}
    missing = [job for job in wanted if job.key not in done]
    if chosen.list:
        print("\n".join(map(str, missing)))
        print(f"{len(missing)} jobs of {len(wanted)}", file=sys.stderr)
        return
    try:
        Runner(missing, chosen.jobs, chosen.seconds, chosen.results).run()
    except FileNotFoundError as error:
        sys.exit(f"run_accuracy: {error}")
    except KeyboardInterrupt:
        sys.exit("run_accuracy: interrupted; all finished jobs are saved")


def _wanted(only: str, judged: Any) -> bool:
    return bool(re.search(only, f"{judged.network} {judged.label} {judged.ranks} ranks"))


class Runner:
    """Runs jobs in processes, several at once, and saves their rows.

    Args:
        missing: Jobs to run, in order.
        limit: Number of jobs at once.
        seconds: Start no job after this time.
        results: Folder of the rows.
    """

    def __init__(
        self, missing: list[Job], limit: int, seconds: float | None, results: Path
    ) -> None:
        self._missing, self._total, self._limit = missing[::-1], len(missing), limit
        self._start = time.monotonic()
        self._end = None if seconds is None else self._start + seconds
        self._results = results
        self._running: dict[Any, tuple[Job, Any]] = {}
        self._done = self._failed = 0

    def run(self) -> None:
        """Run all jobs.

        Raises:
            FileNotFoundError: If the data are missing.
        """
        from workloads import folder

        folder()
        # Jobs end with this program, not after it.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        FORKS.set_forkserver_preload(PRELOADED)
        try:
            while self._start_jobs() or self._running:
                for pipe in wait(list(self._running)):
                    self._finish(pipe)
        finally:
            for _, process in self._running.values():
                process.kill()
        if self._failed:
            sys.exit(f"run_accuracy: {self._failed} jobs failed")

    def _start_jobs(self) -> bool:
        """Start jobs up to the limit; return whether there was one to start."""
        started = False
        while self._missing and len(self._running) < self._limit:
            if self._end is not None and time.monotonic() > self._end:
                self._missing.clear()
                break
            job = self._missing.pop()
            here, there = FORKS.Pipe(duplex=False)
            process = FORKS.Process(target=work, args=(job, there), daemon=True)
            process.start()
            there.close()
            self._running[here] = job, process
            started = True
        return started

    def _finish(self, pipe: Any) -> None:
        job, process = self._running.pop(pipe)
        try:
            row = pipe.recv()
        except EOFError:
            row = f"ended without a result, exit code {process.exitcode}"
        process.join()
        if isinstance(row, str):
            self._failed += 1
            print(f"{job}: failed: {row}", file=sys.stderr, flush=True)
            return
        self._done += 1
        save(row, row.pop("torch"), self._results)
        print(self._line(job, row), flush=True)

    def _line(self, job: Job, row: Row) -> str:
        left = self._total - self._done - self._failed
        each = (time.monotonic() - self._start) / self._done
        score = (
            "diverged" if row["score"] is None else f"{row['metric']} {row['score']:.4f}"
        )
        return (
            f"{job}: {score}, {row['sent'] / 1e6:,.1f} MB, {row['seconds']:.0f} s; "
            f"{left} left, {left * each / 60:.0f} min"
        )


def work(job: Job, pipe: Any) -> None:
    """Run one job in a process of its own, and send its row, or an error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the runner ends it
    import torch

    try:
        pipe.send(plan.run(job) | {"torch": torch.__version__})
    except Exception:
        pipe.send(traceback.format_exc())


if __name__ == "__main__":
    main()
