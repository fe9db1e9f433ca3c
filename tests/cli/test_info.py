"""`sparcml info`, the version, the list of commands, and what a command imports."""

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from sparcml.cli.lazy_commands import COMMANDS, load
from sparcml.costs import COSTS
from sparcml.network.store import from_json, save


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


def test_a_command_is_imported_when_it_is_run():
    code = """
import sys
from sparcml.cli import app, lazy_commands
try:
    app.app(sys.argv[1:], standalone_mode=False)
except SystemExit:
    pass
print(*sorted(m for m in sys.modules if m.startswith("sparcml.cli.") or m == "numpy"))
"""

    def imported(*arguments):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            capture_output=True,
            text=True,
            check=True,
        )
        return set(done.stdout.splitlines()[-1].split())

    least = {"sparcml.cli.app", "sparcml.cli.lazy_commands"}
    assert imported("--help") == least
    started = imported("run", "--help")
    assert least < started
    assert "numpy" not in started
    assert not {f"sparcml.cli.{m}" for m in ("fit", "plan", "bench", "demo")} & started


@pytest.mark.parametrize("name", COMMANDS)
def test_summaries_in_the_list_of_commands_are_those_of_the_commands(name):
    help_text = load(name).help
    assert " ".join(help_text.partition("\n\n")[0].split()) == COMMANDS[name].summary
