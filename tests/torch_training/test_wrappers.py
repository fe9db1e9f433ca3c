"""Optimizers inside others: those of torch, and what Accelerate and Trainer hand out."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.torch_engine.jobs import outcomes

from . import wrappers

pytestmark = pytest.mark.torch
LAUNCHER = Path(sys.executable).with_name("accelerate")
PROGRAM = Path(__file__).with_name("frameworks.py")


@pytest.mark.parametrize("body", [wrappers.as_what_is_inside, wrappers.nothing_is_left])
def test_on_two_ranks(body):
    assert outcomes(2, body, patience=200) == ["finished"] * 2


@pytest.mark.timeout(600)  # importing both packages takes long on a busy machine
@pytest.mark.parametrize(
    ("package", "part"),
    [("accelerate", "accelerated"), ("transformers", "by_trainer")],
)
def test_as_its_launcher_starts_it(package, part, tmp_path):
    """Without a GPU, Accelerate starts several ranks of one machine only by --multi_gpu."""
    pytest.importorskip("accelerate")
    pytest.importorskip(package)
    options = ["--multi_gpu", "--num_processes", "2", "--num_machines", "1"]
    options += ["--main_process_port", "0", "--mixed_precision", "no"]
    done = subprocess.run(
        [LAUNCHER, "launch", *options, "--dynamo_backend", "no", PROGRAM, part, tmp_path],
        capture_output=True,
        text=True,
        timeout=560,
        env={
            **os.environ,
            "ACCELERATE_USE_CPU": "1",
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
            "HF_HOME": str(tmp_path),
            "PYTHONPATH": str(PROGRAM.parents[2]),
        },
    )
    assert done.returncode == 0, done.stderr
    for rank in range(2):
        assert f"rank {rank} of 2: finished" in done.stdout
