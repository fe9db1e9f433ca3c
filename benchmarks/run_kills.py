"""Kill and stop ranks at random moments, or cut their links, and check how the job ends.

    python benchmarks/run_kills.py [--json FILE] [--trials 50] [--jobs 1] [--seed 1] [--cut]

Each trial starts ranks that repeat an allreduce, and sends SIGKILL or SIGSTOP to one of them.
Afterwards the launcher or the survivors must have named that rank and no other one, and no
process and no file may be left. With --cut the ranks are on emulated links (as root), one of
which is cut; then each rank must raise, and name the ranks beyond the cut. Files of MPI's
launcher in /tmp are counted for all trials together, so other MPI jobs on the machine would be
counted too.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

TIMEOUT = 2.0  # SPARCML_TIMEOUT of the ranks
CUT = "CUT"  # in place of a signal: the link of the rank is cut
START_LIMIT = 300.0
LIMIT = 90.0  # seconds of a trial; torchrun waits 30 s for a rank that is stopped
SHORT, LONG = 1_000, 4_000_000  # values
RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "RANK")
# How errors and launchers name a rank: in torchrun's list, with SIGKILL as its exit code. It
# ends the others with SIGTERM.
BLAME = re.compile(
    r"rank (\d+) (?:was killed|is gone|has not answered|has ended|is stopped|is dead|cannot be)"
    r"|rank +: (\d+) \(local_rank: \d+\)\s+exitcode +: -9"
)


@dataclass(frozen=True)
class Trial:
    """What is done to which job.

    Attributes:
        launcher: Program that starts the ranks.
        engine: Engine of the ranks.
        signal: Name of the signal, or CUT.
        ranks: Number of ranks.
        values: Length of the vectors.
        call: Method of the communicator.
        delay: Seconds from the moment at which the ranks run to the signal.
        early: Whether the ranks run as soon as the processes exist, not only once all have
            opened the communicator.
        victim: Rank that gets the signal.
    """

    launcher: str
    engine: str
    signal: str
    ranks: int
    values: int
    call: str
    delay: float
    early: bool
    victim: int

    @property
    def name(self) -> str:
        """The name on the screen."""
        early = ", early" if self.early else ""
        return (
            f"{self.launcher} {self.engine} {self.signal} of rank {self.victim}/{self.ranks} "
            f"after {self.delay:.2f} s in {self.call} of {self.values}{early}"
        )


def choose(count: int, seed: int, *, cut: bool) -> list[Trial]:
    """Return random trials; the first of each ten are for the users' own launchers."""
    rng, trials = random.Random(seed), []
    own = [("torchrun", "torch", "SIGKILL"), ("torchrun", "torch", "SIGKILL"),
           ("mpiexec", "mpi", "SIGSTOP"), ("torchrun", "torch", "SIGSTOP"),
           ("mpiexec", "mpi", "SIGSTOP")]  # fmt: skip
    usual = [("sparcml run", engine, number) for engine in ("mpi", "torch")
             for number in ("SIGKILL", "SIGSTOP")]  # fmt: skip
    if cut:
        own, usual = [], [("sparcml run", e, CUT) for e in ("mpi", "torch", "mpi", "torch")]
    for i in range(count):
        tenth = i // 10 if i % 10 == 9 else len(own)
        launcher, engine, number = own[tenth] if tenth < len(own) else usual[i % 4]
        ranks = 3 if cut else rng.randint(2, 4)
        trials.append(
            Trial(
                launcher,
                engine,
                number,
                ranks,
                rng.choice((SHORT, LONG)),
                rng.choice(("allreduce", "allreduce", "iallreduce")),
                rng.uniform(0, 1),
                # A rank that is stopped inside MPI_Init stops the others there.
                number == "SIGKILL" and launcher == "sparcml run" and rng.random() < 0.25,
                rng.randrange(ranks),
            )
        )
    return trials


def command(trial: Trial, folder: Path) -> list[str]:
    """Return the command line of a job."""
    folder_of_python, ranks = Path(sys.executable).parent, str(trial.ranks)
    target = [__file__, "rank", str(folder), str(trial.values), trial.call]
    python = sys.executable
    return {
        "sparcml run": [python, "-m", "sparcml", "run", "--engine", trial.engine],
        "mpiexec": [str(folder_of_python / "mpiexec"), "-n", ranks, python],
        "torchrun": [python, "-m", "torch.distributed.run", "--standalone"],
    }[trial.launcher] + {
        "sparcml run": ["-n", ranks, *(["--network", "1gbit"] if trial.signal == CUT else [])],
        "mpiexec": [],
        "torchrun": ["--nproc-per-node", ranks],
    }[trial.launcher] + target  # fmt: skip


def run(trial: Trial, folder: Path) -> dict[str, Any]:
    """Run a trial in an empty folder, and return its row."""
    mark = f"SPARCML_KILLS={folder}"
    (folder / "tmp").mkdir()
    job = subprocess.Popen(
        command(trial, folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        start_new_session=True,
        env=os.environ | dict([mark.split("=")])
        | {"TMPDIR": str(folder / "tmp"), "SPARCML_TIMEOUT": str(TIMEOUT),
           "SPARCML_NETWORK": "none", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    suffix = ".pid" if trial.early else ".ready"
    await_files(folder, suffix, trial.ranks if not trial.early else trial.victim, job)
    time.sleep(trial.delay)
    begun = time.monotonic()
    victim = int((folder / f"{trial.victim}.pid").read_text())
    if trial.signal == CUT:
        cut = ["ip", "link", "set", "eth0", "down"]
        subprocess.run(["nsenter", f"--net=/proc/{victim}/ns/net", *cut], check=True)
    else:
        os.kill(victim, getattr(signal, trial.signal))
    try:
        output, _ = job.communicate(timeout=LIMIT)
        hung = False
    except subprocess.TimeoutExpired:
        hung, output = True, ""
    seconds = time.monotonic() - begun
    left = left_processes(mark)
    for pid in [*left, job.pid]:
        if hung or pid != job.pid:
            os.kill(pid, signal.SIGKILL)
    if hung:
        output, _ = job.communicate()
    blamed = {int(a or b) for a, b in BLAME.findall(output)}
    reports = len(re.findall(r"^sparcml\.errors\.TransportError:", output, re.MULTILINE))
    if trial.signal == CUT:  # the victim names a rank on the other side
        named = trial.victim in blamed and reports == trial.ranks
    else:
        named = blamed == {trial.victim}
    segments = {Path(n) for f in folder.glob("*.segments") for n in f.read_text().split()}
    files = [*(p for p in segments if p.exists()), *(folder / "tmp").iterdir()]
    files = [p for p in files if not p.name.startswith("torchelastic_")]  # torchrun's own
    for path in segments:
        path.unlink(missing_ok=True)
    return asdict(trial) | {
        "seconds": seconds,
        "code": job.returncode,
        "named": named,
        "reports": reports,
        "blamed": sorted(blamed),
        "raw": len(
            re.findall(r"^(?:mpi4py\.MPI\.Exception|RuntimeError):", output, re.MULTILINE)
        ),
        "hung": hung,
        "left_processes": len(left),
        "left_files": [str(p) for p in files],
        "last_line": output.strip().rpartition("\n")[2][-300:],
    }


def attempt(trial: Trial) -> dict[str, Any]:
    """Run a trial in a new folder, and return its row with a verdict."""
    with tempfile.TemporaryDirectory() as folder:
        row = run(trial, Path(folder))
    clean = not (row["hung"] or row["left_processes"] or row["left_files"] or row["raw"])
    return {"name": trial.name, "ok": clean and row["named"] and row["code"] != 0} | row


def await_files(folder: Path, suffix: str, wanted: int, job: Any) -> None:
    """Wait until ranks have written their files: this many, or the one of an early victim."""
    deadline = time.monotonic() + START_LIMIT
    while time.monotonic() < deadline and job.poll() is None:
        names = {path.stem for path in folder.glob(f"*{suffix}")}
        if len(names) == wanted if suffix == ".ready" else str(wanted) in names:
            return
        time.sleep(0.01)
    raise SystemExit(f"run_kills: the ranks did not start: {job.communicate()[0][-2000:]}")


def left_processes(mark: str) -> list[int]:
    """Return the processes of a job that still exist, after a moment."""
    deadline = time.monotonic() + 2
    while left := [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))  # noqa: PTH208
                   if mark.encode() in environment_of(pid)]:  # fmt: skip
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    return left


def environment_of(pid: int) -> list[bytes]:
    """Return the environment of a process, empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def rank_main(folder: Path, size: int, call: str) -> None:
    """Repeat an allreduce until something happens."""
    rank = next(os.environ[name] for name in RANKS if name in os.environ)
    write(folder / f"{rank}.pid", str(os.getpid()))
    import numpy as np

    import sparcml
    from sparcml.transport import shared_memory

    if "PMI_RANK" in os.environ:
        from mpi4py import MPI  # noqa: F401 - maps the segments

        names = "\n".join(map(str, shared_memory.segments()))
        write(folder / f"{rank}.segments", names)
    comm = sparcml.world()
    x = np.ones(size, np.float32)
    comm.allreduce(x, algorithm="ring")
    write(folder / f"{rank}.ready", "")
    while True:
        if call == "allreduce":
            comm.allreduce(x, algorithm="ring")
        else:
            comm.iallreduce(x, algorithm="ring").wait()


def write(path: Path, text: str) -> None:
    """Write a file in one step."""
    temporary = path.with_suffix(".new")
    temporary.write_text(text)
    temporary.rename(path)


def main() -> None:
    """Run all trials, show them, and exit with 1 if one failed."""
    if sys.argv[1:2] == ["rank"]:
        rank_main(Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    from sparcml.bench.results import write_json
    from sparcml.environment import describe

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="JSON file for the rows")
    parser.add_argument("--trials", type=int, default=50, help="number of trials")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument("--jobs", type=int, default=1, help="trials at the same time")
    parser.add_argument(
        "--cut", action="store_true", help="cut links of an emulated cluster"
    )
    options = parser.parse_args()
    hydra_files = set(Path("/tmp").glob("hydra_hwloc_xmlfile_*"))
    trials, rows = choose(options.trials, options.seed, cut=options.cut), []
    with ThreadPoolExecutor(options.jobs) as pool:
        for row in pool.map(attempt, trials):
            rows.append(row)
            verdict = "ok    " if row["ok"] else "FAILED"
            print(f"{len(rows)}: {verdict} {row['seconds']:5.1f} s  {row['name']}: "
                  f"{row['last_line']}", flush=True)  # fmt: skip
    left = len(set(Path("/tmp").glob("hydra_hwloc_xmlfile_*")) - hydra_files)
    failed = sum(not row["ok"] for row in rows)
    print(f"# {len(rows)} trials, {failed} failed; mpiexec left {left} files in /tmp")
    if options.json is not None:
        facts = describe(f"--trials {options.trials}", options.seed)
        write_json(options.json, facts | {"hydra_files": str(left)}, rows)
    raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()
