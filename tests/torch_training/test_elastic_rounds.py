"""Rounds that workers leave and join, on processes of which one is killed."""

import os
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from sparcml import local
from sparcml.errors import TransportError
from sparcml.local.elastic import ElasticRounds
from sparcml.local.quorum import Quorum
from sparcml.torch import ElasticTraining
from tests.torch_engine.jobs import outcomes, torchrun

from . import elastic_workers

ROOT = Path(__file__).parents[2]


@pytest.mark.torch
def test_a_worker_dies_another_is_late_and_one_joins():
    said = outcomes(4, elastic_workers.rounds_with_a_death, bad=1)
    assert said == ["finished", None, "finished", "finished"]


@pytest.mark.torch
def test_a_worker_killed_between_inner_steps():
    said = outcomes(3, elastic_workers.dies_between_steps, bad=2)
    assert said == ["finished", "finished", None]


@pytest.mark.torch
def test_torchrun_restarts_local_training_from_a_consolidated_state(tmp_path):
    job = torchrun(
        2,
        "torch_training/elastic_local.py",
        str(tmp_path),
        restarts=1,
        PYTHONPATH=os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", ""))),
        SPARCML_TIMEOUT="10",
    )
    assert job.returncode == 0, job.stderr[-2000:]
    for rank in range(2):
        assert f"rank {rank} has resumed" in job.stdout


def test_bad_settings():
    store = dist.HashStore()
    with pytest.raises(
        ValueError, match="minimum must be at most the number of workers, 3, got 4"
    ):
        Quorum(store, 0, workers=3, minimum=4)
    with pytest.raises(ValueError, match="one fragment without delay, got DiLoCo"):
        ElasticRounds(local.DiLoCo(4, delay=1), Quorum(store, 0, 1))
    with pytest.raises(
        TypeError, match=r"ElasticRounds: method must be a method of rounds .*got SPARTA"
    ):
        ElasticRounds(local.SPARTA(), Quorum(store, 0, 1))  # type: ignore[arg-type]
    module = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(module.parameters())
    quorum = Quorum(store, 0, 1)
    with pytest.raises(TypeError, match=r"method must be a method of rounds .*got SPARTA"):
        ElasticTraining(module, optimizer, local.SPARTA(), quorum)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"quorum must be a sparcml.local.quorum.Quorum"):
        ElasticTraining(module, optimizer, local.DiLoCo(2), 3)  # type: ignore[arg-type]


def test_a_quorum_that_is_never_reached():
    quorum = Quorum(dist.HashStore(), 0, workers=3, minimum=2, grace=0.1, timeout=0.3)
    with pytest.raises(
        TransportError, match=r"worker 0 waited 0\.3 s for a round of at least 2 workers"
    ):
        quorum.meet(-1)
