"""Time of short collectives against MPI's own, and of `native` against the call it makes.

Jobs: 2 ranks and 4 ranks on shared memory, and 8 ranks on emulated links of 1 Gbit/s. With
--against FOLDER, a folder that `pip install --target` has filled with another version, its
rows are measured in the same run, job by job.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

OTHER, OUTPUT, JOB = "LATENCY_PACKAGE", "LATENCY_OUTPUT", "LATENCY_JOB"
SIZE = 1 << 20
ENTRIES = (10, 1000)
NATIVE_BYTES = (400_000, 4_000_000, 64_000_000)
DENSITIES = (0.01, 0.1, 1.0)  # percent
SIZES = (100_000, 1_000_000)
ALGORITHMS = (
    "auto",
    "ssar_recursive_double",
    "ssar_split_allgather",
    "dsar_split_allgather",
)
Row = dict[str, Any]


def use_other_version() -> None:
    """Start again with the other version, if there is one: the launcher has loaded ours."""
    other = os.environ.get(OTHER)
    if other is None or other in sys.path:
        return
    if "sparcml" in sys.modules or "mpi4py" in sys.modules:
        os.execv(sys.executable, [sys.executable, __file__])
    # The finder of an editable installation precedes all folders.
    names = ("Editable", "Redirecting")
    sys.meta_path = [
        f for f in sys.meta_path if not any(n in type(f).__name__ for n in names)
    ]
    sys.path.insert(0, other)


def timed(
    functions: Mapping[str, Callable[[], object]], runs: int, world: Any
) -> list[Row]:
    """Return the median and mean seconds of calls, and the processor seconds of all ranks.

    The functions run in turns of a tenth of the runs, so that a disturbance affects all, and
    in a new order each time, after two calls that are not counted: a long message affects
    the next calls.
    """
    order = random.Random(0)  # the same on all ranks
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    used = dict.fromkeys(functions, 0.0)
    for turn in range(11):
        names = list(functions)
        order.shuffle(names)
        for name in names:
            function = functions[name]
            world.Barrier()
            for _ in range(2):
                function()
            begin, times = time.process_time(), []
            for _ in range(max(3, runs // 10)):
                start = time.perf_counter()
                function()
                times.append(time.perf_counter() - start)
            if turn:  # the first is not counted
                seconds[name] += times
                used[name] += time.process_time() - begin
    return [
        {
            "case": name,
            "seconds": float(np.median(times)),
            "mean": float(np.mean(times)),
            "cpu": float(world.allreduce(used[name] / len(times))),
        }
        for name, times in seconds.items()
    ]


def short_rows(comm: Any, world: Any, stream: Callable[[int, int], Any]) -> list[Row]:
    """Measure barriers, short vectors and native allreduces on shared memory."""
    one, total = np.ones(1), np.empty(1)
    short: dict[str, Callable[[], object]] = {
        "MPI_Allreduce, 8 bytes": lambda: world.Allreduce(one, total),
        "MPI_Barrier": world.Barrier,
        "barrier": comm.barrier,
    }
    for nnz in ENTRIES:
        short[f"allreduce, {nnz} of 1 M"] = partial(comm.allreduce, stream(SIZE, nnz))
    rows = timed(short, 3000, world)
    for row in rows:
        if row["case"].startswith("allreduce"):
            row["phases"] = phases(comm, short[row["case"]])
    for nbytes in NATIVE_BYTES if comm.size == 2 else ():
        a = np.random.default_rng(comm.rank).standard_normal(nbytes // 4, np.float32)
        large: dict[str, Callable[[], object]] = {
            f"MPI_Allreduce, {nbytes / 1e6:g} MB": partial(
                world.Allreduce, a, np.empty_like(a)
            ),
            f"native, {nbytes / 1e6:g} MB": partial(comm.allreduce, a, algorithm="native"),
        }
        rows += timed(large, max(30, 40_000_000 // nbytes), world)
    return rows


def phases(comm: Any, function: Callable[[], object], runs: int = 1000) -> dict[str, float]:
    """Return the seconds per call that the statistics count, by phase, and all of them."""
    comm.stats.reset()
    start = time.perf_counter()
    for _ in range(runs):
        function()
    total = (time.perf_counter() - start) / runs
    return {"total": total} | {n: s / runs for n, s in comm.stats.seconds.items()}


def network_rows(comm: Any, world: Any, stream: Callable[[int, int], Any]) -> list[Row]:
    """Measure sparse vectors on emulated links, after connections have been opened."""
    rows: list[Row] = []
    for _ in range(300):
        comm.allreduce(stream(SIZES[0], 10), algorithm="ssar_split_allgather")
    for size in SIZES:
        for density in DENSITIES:
            x = stream(size, round(size * density / 100))
            functions = {a: partial(comm.allreduce, x, algorithm=a) for a in ALGORITHMS}
            case = f"{size} at {density:g} %"
            rows += [
                row | {"case": case, "algorithm": row["case"]}
                for row in timed(functions, 100, world)
            ]
    return rows


def rank() -> None:
    """Measure as one rank of a job."""
    use_other_version()
    import sparcml

    if not str(sparcml.__file__).startswith(os.environ.get(OTHER, "")):
        raise SystemExit(f"latency: {sparcml.__file__} is not the other version")
    with sparcml.world() as comm:
        from mpi4py import MPI

        def stream(size: int, nnz: int) -> Any:
            rng = np.random.default_rng((comm.rank, nnz))
            indices = np.sort(rng.choice(size, nnz, replace=False)).astype(np.uint32)
            return sparcml.Stream(size, indices, rng.standard_normal(nnz, np.float32))

        x = stream(10_000, 50)
        expected = np.sum(MPI.COMM_WORLD.allgather(x.to_dense()), axis=0)
        wrong = not np.allclose(comm.allreduce(x).to_dense(), expected, atol=1e-5)
        measure = network_rows if os.environ[JOB] == "network" else short_rows
        rows = measure(comm, MPI.COMM_WORLD, stream)
        if comm.rank == 0:
            about = {"ranks": comm.size, "job": os.environ[JOB], "wrong": wrong}
            Path(os.environ[OUTPUT]).write_text(json.dumps([about | row for row in rows]))


def run(job: str, ranks: int, other: str | None) -> list[Row]:
    """Run one job and return its rows."""
    launcher = [str(Path(sys.executable).with_name("mpiexec")), "-n", str(ranks)]
    command = [*launcher, sys.executable, __file__]
    if job == "network":
        sparcml = str(Path(sys.executable).with_name("sparcml"))
        command = [sparcml, "run", "-n", str(ranks), "--network", "1gbit", __file__]
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "rows.json"
        environment = os.environ | {JOB: job, OUTPUT: str(output)}
        if other is not None:
            environment[OTHER] = other
        subprocess.run(command, env=environment, check=True)
        rows: list[Row] = json.loads(output.read_text())
    return [row | {"version": "ours" if other is None else "before"} for row in rows]


def main() -> None:
    """Run all jobs."""
    from sparcml.bench.results import write_json
    from sparcml.environment import describe

    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--json", type=Path)
    options.add_argument("--against", metavar="FOLDER", help="another installed version")
    chosen = options.parse_args()
    rows = []
    for job, ranks in (("shared memory", 2), ("shared memory", 4), ("network", 8)):
        for other in (None, chosen.against) if chosen.against else (None,):
            found = run(job, ranks, other)
            rows += found
            for row in found:
                print(
                    f"{row['version']:7} {ranks} {row['case']:24} {row.get('algorithm', ''):22}"
                    f" {row['seconds'] * 1e6:10.1f} us  cpu {row['cpu'] * 1e6:10.1f} us",
                    flush=True,
                )
    if chosen.json:
        write_json(chosen.json, describe("", 0), rows)


if __name__ == "__main__":
    if OUTPUT in os.environ:
        rank()
    else:
        main()
