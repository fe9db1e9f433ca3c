"""The examples run as they are, alone and on MPI ranks."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
LAUNCHED = [path for path in EXAMPLES if "sparcml run" in path.read_text()]


def run(*command):
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_alone(path):
    assert run(path)


@pytest.mark.mpi
@pytest.mark.parametrize("path", LAUNCHED, ids=lambda path: path.stem)
def test_on_two_ranks(path):
    assert run("-m", "sparcml", "run", "-n", "2", path)


def test_the_error_of_a_mean_falls_with_the_ranks():
    (path,) = [p for p in EXAMPLES if p.stem == "mean_estimation"]
    slope = re.search(r"slope in log-log: (\S+)", run(path))
    assert slope is not None
    assert float(slope[1]) == pytest.approx(-1, abs=0.1)


def test_one_bit_stalls_without_feedback_and_not_with_it():
    (path,) = [p for p in EXAMPLES if p.stem == "one_bit_stalls"]
    found = dict(re.findall(r"^(.+?) +loss .*, +(\S+) times", run(path), re.MULTILINE))
    ratios = {name: float(ratio) for name, ratio in found.items()}
    for name in ("1-bit", "sign"):
        assert ratios[f"{name}, no feedback"] > 10
        assert ratios[f"{name}, with feedback"] < 1.1
