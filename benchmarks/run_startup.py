"""Measure how long programs take to start: imports, the command line, and ranks.

    python benchmarks/run_startup.py --json FILE [--runs 15]

Each program is a new process; the programs take turns. Wall time and processor time, with all
processes that a program starts, are medians. The file cache is warm and byte code is there.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from sparcml.bench.results import write_json
from sparcml.environment import describe

NUMPY = "import numpy"
RANKS = 4


def programs(folder: Path) -> dict[str, list[str]]:
    """Return the arguments of each program, by name."""
    scripts = {
        "nothing": "",
        "mpi": "from mpi4py import MPI",
        "world": "import sparcml; sparcml.world()",
    }
    for name, text in scripts.items():
        (folder / f"{name}.py").write_text(text)
    run = ["-m", "sparcml", "run", "-n"]
    return {
        "python": ["-c", "pass"],
        NUMPY: ["-c", NUMPY],
        "import numpy, sparcml": ["-c", "import numpy, sparcml"],
        "sparcml.Stream": ["-c", "import sparcml; sparcml.Stream"],
        "sparcml.Compressed": ["-c", "import sparcml; sparcml.Compressed"],
        "sparcml.world()": ["-c", scripts["world"]],
        "sparcml --help": ["-m", "sparcml", "--help"],
        "sparcml run, 1 rank": [*run, "1", str(folder / "nothing.py")],
        f"sparcml run, {RANKS} ranks, import mpi4py": [
            *run,
            str(RANKS),
            str(folder / "mpi.py"),
        ],
        f"sparcml run, {RANKS} ranks, world()": [
            *run,
            str(RANKS),
            str(folder / "world.py"),
        ],
    }


def start(arguments: list[str]) -> tuple[float, float]:
    """Run a program once; return its wall and processor time in ms."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(
        [sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment
    )
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall * 1e3, processor * 1e3


def main() -> None:
    """Start all programs in turns."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--json", type=Path)
    options.add_argument("--runs", type=int, default=15)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        named = programs(Path(folder))
        for arguments in named.values():
            start(arguments)  # writes byte code, fills the file cache
        times = [{n: start(a) for n, a in named.items()} for _ in range(chosen.runs)]
    rows = [
        {
            "program": name,
            "wall": median(run[name][0] for run in times),
            "processor": median(run[name][1] for run in times),
            "over_numpy": median(run[name][0] - run[NUMPY][0] for run in times),
        }
        for name in named
    ]
    for row in rows:
        print({k: round(v, 1) if isinstance(v, float) else v for k, v in row.items()})
    if chosen.json:
        write_json(chosen.json, describe(f"--runs {chosen.runs}", 0), rows)


if __name__ == "__main__":
    main()
