"""`sparcml probe` under mpiexec, and jobs that use what it has kept."""

import json
import os
import subprocess
import sys

import pytest

from sparcml.costs import COSTS, in_shared_memory
from sparcml.network.store import from_json

from .jobs import HERE, MPIEXEC, mpiexec

pytestmark = pytest.mark.mpi
SPARCML = [sys.executable, str(HERE / "short_probe.py")]


def cached_in(folder):
    return {"XDG_CACHE_HOME": str(folder), "SPARCML_NETWORK": ""}


def probe(folder, *arguments, ranks=2):
    start = [str(MPIEXEC), "-n", str(ranks)] if ranks > 1 else []
    return subprocess.run(
        [*start, *SPARCML, "probe", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | cached_in(folder) | {"COLUMNS": "80"},
    )


@pytest.mark.parametrize("ranks", [2, 3])
def test_what_is_probed_is_kept_and_used(ranks, tmp_path):
    how = [] if ranks == 2 else ["--quick", "--json"]
    done = probe(tmp_path, "--save", *how, ranks=ranks)
    assert done.returncode == 0, done.stderr
    (file,) = (tmp_path / "sparcml").iterdir()
    assert str(file) in done.stdout + done.stderr
    text = file.read_text()
    if ranks == 2:
        assert_table(done.stdout.replace(str(file), ""))
    else:
        assert json.loads(done.stdout) == json.loads(text)
    found = from_json(text)
    assert (found.ranks, found.engine, len(found.hosts)) == (ranks, "mpi", 1)
    told = json.loads(text)["network"]
    assert all(told[cost] >= 0 for cost in COSTS)
    assert bool(told["calibration"]) == bool(found.allreduce_misfits) == (ranks == 2)
    job = mpiexec(ranks, "networks.py", **cached_in(tmp_path))
    assert job.out == f"{found.model()}\n" * ranks

    file.write_text("{}")  # a broken file is one line from rank 0
    job = mpiexec(3, "networks.py", **cached_in(tmp_path))
    assert job.code == 0
    assert job.err.count("ignoring") == 1
    processors = len(os.sched_getaffinity(0))
    assert job.out == f"{in_shared_memory(3 / processors)}\n" * 3


def assert_table(text):
    assert all(len(line) <= 80 for line in text.splitlines())
    for word in ("latency", "byte", "merge", "± error", "exclusive", "MB/s", "fit within"):
        assert word in text


def test_nothing_need_be_kept(tmp_path):
    done = probe(tmp_path, "--quick", "--no-save")
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir())


def test_where_nothing_can_be_kept_there_is_a_remedy(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    done = probe(file, "--quick", "--save")
    assert done.returncode == 1
    assert "latency" in done.stdout  # it was measured all the same
    assert "or use --no-save" in done.stderr


def test_alone_it_says_what_to_do(tmp_path):
    done = probe(tmp_path, ranks=1)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "sparcml run -n 4 -m sparcml probe" in done.stderr


def test_rank_0_decides_for_all(tmp_path):
    told = ("100mbit", "10gbit", "/nowhere/at/all")
    job = mpiexec(3, "networks.py", *told, **cached_in(tmp_path))
    assert job.code == 0, job.err
    lines = job.out.splitlines()
    assert len(lines) == 3
    assert len(set(lines)) == 1
    assert "source='100mbit'" in lines[0]


def test_what_rank_0_cannot_use_raises_everywhere(tmp_path):
    told = ("/nowhere/at/all", "1gbit")
    job = mpiexec(2, "networks.py", *told, **cached_in(tmp_path))
    assert job.out.count("network: file /nowhere/at/all cannot be read") == 2
