"""`sparcml probe` under mpiexec, and jobs that use what it has kept."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from sparcml.costs import COSTS, ONE_MACHINE
from sparcml.network.measurement import from_json

from .jobs import MPIEXEC, mpiexec

pytestmark = pytest.mark.mpi
SPARCML = [sys.executable, "-m", "sparcml"]


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


@pytest.fixture(scope="module", params=[2, 3])
def probed(request, tmp_path_factory):
    """So many ranks have measured, and kept it in this folder."""
    folder = tmp_path_factory.mktemp("probed")
    how = ["--json", "--save"] + ["--quick"] * (request.param > 2)
    return request.param, folder, probe(folder, *how, ranks=request.param)


def test_what_is_probed_is_kept_and_used(probed):
    ranks, folder, done = probed
    assert done.returncode == 0, done.stderr
    found = from_json(done.stdout)
    assert (found.ranks, found.engine, len(found.hosts)) == (ranks, "mpi", 1)
    told = json.loads(done.stdout)["network"]
    assert all(told[cost] >= 0 for cost in COSTS)
    assert bool(told["calibration"]) == bool(found.allreduce_misfits) == (ranks == 2)
    (file,) = (folder / "sparcml").iterdir()
    assert str(file) in done.stderr
    job = mpiexec(ranks, "networks.py", **cached_in(folder))
    assert job.out == f"{found.model()}\n" * ranks


def test_a_broken_file_is_one_line_from_rank_0(probed, tmp_path):
    shutil.copytree(probed[1], tmp_path, dirs_exist_ok=True)
    (file,) = (tmp_path / "sparcml").iterdir()
    file.write_text("{}")
    job = mpiexec(3, "networks.py", **cached_in(tmp_path))
    assert job.code == 0
    assert job.err.count("ignoring") == 1
    assert job.out == f"{ONE_MACHINE}\n" * 3


def test_the_table_fits_and_nothing_need_be_kept(tmp_path):
    done = probe(tmp_path, "--no-save")
    assert done.returncode == 0, done.stderr
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    for word in ("latency", "byte", "merge", "± error", "exclusive", "MB/s", "fit within"):
        assert word in done.stdout
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
