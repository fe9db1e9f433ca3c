"""`sparcml info`, the version, and what an import must not pull in."""

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from sparcml.costs import COSTS
from sparcml.network.measurement import from_json
from sparcml.network.store import save


def sparcml(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sparcml", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"COLUMNS": "80"} | environment,
    )


NETWORK = {
    "sparcml network": 3,
    "network": dict.fromkeys(COSTS, 1e-6) | {"burst": 0.0, "calibration": []},
    "errors": {},
    "misfit": 0.1,
    "exclusive": {},
    "engine": "mpi",
    "hosts": ["a", "b"],
    "ranks": 8,
    "allreduce_misfits": {},
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A cache that holds one network, measured three days ago."""
    folder = str(tmp_path_factory.mktemp("kept"))
    found = from_json(json.dumps(NETWORK | {"measured": time.time() - 3 * 86400}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", folder)
        save(found)
    return folder


@pytest.fixture(scope="module")
def facts(kept):
    done = sparcml("info", "--json", SPARCML_TIMEOUT="7", XDG_CACHE_HOME=kept)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_json_has_versions_and_kernels(facts):
    assert facts["versions"]["numpy"] == np.__version__
    assert facts["versions"]["python"] == sys.version.split()[0]
    assert facts["kernels"]["active"] in facts["kernels"]["available"]
    assert "scalar" in facts["kernels"]["available"]


def test_json_says_what_the_mpi_can_do(facts):
    mpi = facts["mpi"]
    if mpi["library"] is None:
        assert mpi["problem"]
    elif mpi["threads"] == "THREAD_MULTIPLE":
        assert mpi["progress"] == "progress in the background"
    else:
        assert mpi["progress"] == "iallreduce completes inside wait"


def test_settings_show_value_and_meaning(facts):
    timeout = facts["settings"]["SPARCML_TIMEOUT"]
    assert (timeout["value"], timeout["set"]) == ("7", True)
    assert "seconds" in timeout["meaning"]
    assert not facts["settings"]["SPARCML_ISA"]["set"] or "SPARCML_ISA" in os.environ


def test_json_has_the_networks_with_their_age(facts):
    (shown,) = facts["networks"].values()
    assert (shown["engine"], shown["hosts"], shown["ranks"]) == ("mpi", ["a", "b"], 8)
    assert 3 * 86400 <= shown["age"] < 3 * 86400 + 100


def test_table_fits_80_columns(tmp_path):
    done = sparcml("info", XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    for word in ("instruction set", "mpi4py", "torch", "SPARCML_TIMEOUT"):
        assert word in done.stdout
    assert "not measured; sparcml run" in done.stdout


def test_table_has_the_network_and_a_bad_instruction_set_is_not_raised(kept):
    done = sparcml("info", SPARCML_ISA="abacus", XDG_CACHE_HOME=kept)
    assert done.returncode == 0, done.stderr
    assert "abacus" in done.stdout
    assert "8 ranks on mpi, a, b: measured 3 days ago" in done.stdout


def test_version_and_help():
    assert sparcml("--version").stdout.startswith("sparcml ")
    shown = sparcml("--help").stdout
    assert "run" in shown
    assert "info" in shown


def test_unknown_command_is_one_line():
    done = sparcml("sing")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "sing" in done.stderr


def test_import_leaves_the_command_line_out():
    code = "import sparcml, sys; print({'typer', 'rich', 'mpi4py'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"
