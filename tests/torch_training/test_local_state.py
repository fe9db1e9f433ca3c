"""States of local training: any order of loading, what is not trained, and the end of rounds."""

import copy
from functools import partial
from typing import Any

import pytest
import torch

import sparcml
from sparcml.torch import DeMo, DiLoCo
from tests.torch_engine.jobs import outcomes

from . import local_states


@pytest.mark.torch
def test_on_ranks():
    assert outcomes(2, local_states.everything) == ["finished"] * 2


def network() -> torch.nn.Sequential:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(4, 5), torch.nn.BatchNorm1d(5), torch.nn.Linear(5, 1)
    )


def steps(model, optimizer, count):
    for _ in range(count):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()


@pytest.mark.parametrize("options", [{}, {"fragments": 2}, {"fragments": 2, "delay": 1}])
@pytest.mark.parametrize("count", [3, 4, 5, 6, 12])
def test_the_end_of_the_block_changes_nothing_after_finish(options, count):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with sparcml.world() as comm:
        with DiLoCo(model, optimizer, sync_every=6, comm=comm, **options) as training:
            steps(model, optimizer, count)
            training.finish()
            before = copy.deepcopy(model.state_dict())
            training.finish()
        for name, value in model.state_dict().items():
            assert torch.equal(value, before[name]), name


def test_a_fragment_that_was_just_merged_is_not_moved_again():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with sparcml.world() as comm:
        training = DiLoCo(model, optimizer, sync_every=6, comm=comm, fragments=2)
        steps(model, optimizer, 6)
        before = copy.deepcopy(model.state_dict())
        training.finish()
        moved = {
            name
            for name, value in model.named_parameters()
            if not torch.equal(value, before[name])
        }
        training.close()
    assert moved  # the other fragment, which has three steps behind it
    assert len(moved) < len(list(model.parameters()))


def test_a_consolidated_state_has_what_is_not_trained():
    model = network()
    model[0].requires_grad_(False)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trained, 0.1)
    other = copy.deepcopy(model)
    with torch.no_grad():
        other[0].weight.zero_()
    with sparcml.world() as comm:
        with DiLoCo(model, optimizer, sync_every=6, comm=comm) as training:
            steps(model, optimizer, 4)
            saved = training.state_dict(consolidate=True)
            expected = copy.deepcopy(model.state_dict())
        again = torch.optim.SGD([p for p in other.parameters() if p.requires_grad], 0.1)
        with DiLoCo(other, again, sync_every=6, comm=comm) as training:
            training.load_state_dict(saved)
            for name, value in other.state_dict().items():
                assert torch.allclose(value, expected[name], rtol=1e-6), name
            assert other[1].num_batches_tracked == 4


def test_demo_needs_one_learning_rate():
    model = network()
    groups = [{"params": model[0].parameters()}]
    groups += [{"params": [*model[1].parameters(), *model[2].parameters()], "lr": 0.001}]
    optimizer = torch.optim.SGD(groups, 0.1)
    with sparcml.world() as comm:
        training = DeMo(model, optimizer, comm=comm)
        with pytest.raises(
            ValueError, match=r"same learning rate, got 0\.001, 0\.1; or pass"
        ):
            steps(model, optimizer, 1)
        training.close()


def test_a_state_of_another_synchronous_start_is_refused():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with sparcml.world() as comm:
        options: dict[str, Any] = {"sync_every": 6, "comm": comm}
        with DiLoCo(model, optimizer, synchronous_steps=4, **options) as training:
            steps(model, optimizer, 2)
            saved = training.state_dict()
        training = DiLoCo(model, optimizer, **options)
        with pytest.raises(
            ValueError, match=r"must be 0 steps with Dense\(.*got 4 steps with"
        ):
            training.load_state_dict(saved)
        training.close()


def test_an_object_that_is_closed():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with sparcml.world() as comm:
        with DiLoCo(model, optimizer, sync_every=3, comm=comm) as training:
            steps(model, optimizer, 2)
            with pytest.raises(RuntimeError, match="DiLoCo: with must not be nested"):
                training.__enter__()
            training.close()
            training.close()
            before = copy.deepcopy(model.state_dict())
            steps(model, optimizer, 1)  # a plain step
        assert training.steps == 2
        assert not torch.equal(model[2].weight, before["2.weight"])
        for call in (
            training.finish,
            training.averaged,
            training.__enter__,
            partial(training.state_dict, consolidate=True),
        ):
            with pytest.raises(RuntimeError, match="must be open, got one that is closed"):
                call()
        assert training.state_dict()["state"]["step"] == 2
