"""States: resumed bit for bit, on other numbers of ranks, under other methods."""

import os
import re
from pathlib import Path

import pytest

from tests.torch_engine.jobs import outcomes, torchrun

from . import checkpoints

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.torch


def test_the_same_number_of_ranks_resumes_bit_for_bit():
    assert outcomes(3, checkpoints.resume_bit_for_bit) == ["finished"] * 3


def test_a_job_goes_on_after_a_rank_was_killed_in_mid_step(tmp_path):
    body, folder = checkpoints.killed_in_mid_step, str(tmp_path)
    said = outcomes(3, body, folder, bad=1, SPARCML_TIMEOUT="5")
    for word in (said[0], said[2]):
        assert re.match("TransportError: .*rank 1", word or ""), said
    assert outcomes(3, checkpoints.go_on, folder) == ["finished"] * 3


def test_torchrun_starts_a_job_again_and_it_goes_on_bit_for_bit(tmp_path):
    job = torchrun(
        2,
        "torch_training/elastic.py",
        str(tmp_path),
        restarts=1,
        PYTHONPATH=os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", ""))),
        SPARCML_TIMEOUT="10",
    )
    assert job.returncode == 0, job.stderr[-2000:]
    for rank in range(2):
        assert f"rank {rank} is where it would have been" in job.stdout


def test_by_distributed_checkpoint(tmp_path):
    body = checkpoints.by_distributed_checkpoint
    assert outcomes(2, body, str(tmp_path)) == ["finished"] * 2


def test_nothing_is_lost_on_another_number_of_ranks(tmp_path):
    assert outcomes(3, checkpoints.save, str(tmp_path)) == ["finished"] * 3
    for ranks in (1, 2):
        said = outcomes(ranks, checkpoints.load_elsewhere, str(tmp_path), 3)
        assert said == ["finished"] * ranks


@pytest.mark.parametrize(
    "body", [checkpoints.changed_in_mid_run, checkpoints.refusals, checkpoints.scaled]
)
def test_on_two_ranks(body):
    assert outcomes(2, body) == ["finished"] * 2
