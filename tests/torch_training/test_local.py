"""Local training of PyTorch models, on processes."""

import re

import pytest
import torch
from torch.nn.parallel import DistributedDataParallel

import sparcml
from sparcml.torch import DeMo, DiLoCo, SparseLoCo
from tests.torch_engine.jobs import outcomes

from . import localizing
from .models import group


@pytest.mark.torch
def test_on_ranks():
    assert outcomes(3, localizing.everything) == ["finished"] * 3


@pytest.mark.torch
def test_ranks_with_different_settings():
    for word in outcomes(2, localizing.differ):
        assert re.match(
            r"MismatchError: DiLoCo: rank 0 has settings=.*sync_every=2", word or ""
        )


PARAMETERS = [f"{i}.{kind}" for i in (0, 2, 4) for kind in ("bias", "weight")]
ORDERS = (tuple(PARAMETERS[:2]), tuple(PARAMETERS[2:]))


@pytest.mark.torch
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"sync_every": 30, "fragments": 4},
            "fragments must divide sync_every, 30, got 4; use one of 1, 2, 3, 5, 6, 10, 15, 30",
        ),
        (
            {"sync_every": 4, "delay": 4},
            "delay must be below sync_every / fragments, 4, got 4; only one fragment",
        ),
        (
            {"sync_every": 4, "fragments": ORDERS[::-1]},
            "rank 0 has settings=.*but rank 1 has settings=.*all ranks must pass the same",
        ),
        ({"sync_every": 4, "buffers": "mix"}, "buffers must be average or local"),
        (
            {"sync_every": 4, "fragments": 2, "optimizer_state": "average"},
            "rank 0 has optimizer state=.*but rank 1 has optimizer state=",
        ),
    ],
)
def test_one_rank_with_wrong_settings_stops_all_of_them(options, message):
    said = outcomes(3, localizing.wrong_on_one_rank, options)
    for word in said:
        assert word is not None, said
        assert re.search(message, word), word
        assert "\n" not in word


@pytest.mark.torch
def test_an_optimizer_that_makes_no_steps_on_one_rank():
    said = outcomes(2, localizing.without_steps)
    for word in said:
        assert re.match(
            "MismatchError: (step|finish): rank . and rank . differ in step; all ranks must make",
            word or "",
        ), said


def attempt(build=DiLoCo, module=None, optimizer=None, **options):
    module = torch.nn.Linear(3, 2) if module is None else module
    optimizer = optimizer or torch.optim.SGD(module.parameters(), lr=0.1)
    return sparcml.launch(lambda comm: build(module, optimizer, comm=comm, **options), 1)[0]


class WithoutSteps:
    """An optimizer of another library."""

    param_groups = ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sync_every": 30, "fragments": 4}, "fragments must divide sync_every, 30, got 4"),
        ({"sync_every": 30, "delay": 30}, "delay must be below sync_every / fragments, 30"),
        ({"buffers": "mix"}, "buffers must be average or local, got 'mix'"),
        ({"synchronous_steps": -1}, "DiLoCo: synchronous_steps must be >= 0, got -1"),
        (
            {"synchronous_method": sparcml.QSGD(8)},
            "DiLoCo: synchronous_method must be None without synchronous_steps, got QSGD",
        ),
        (
            {"synchronous_steps": 2, "synchronous_method": sparcml.MajorityVote()},
            "DiLoCo: synchronous_method must return a mean, got MajorityVote",
        ),
        ({"sync_every": 3, "fragments": 3}, "at most the number of parameters, 2, got 3"),
    ],
)
def test_wrong_settings(options, message):
    with pytest.raises(ValueError, match=message):
        attempt(**options)


def test_wrong_types():
    with pytest.raises(
        TypeError, match=r"optimizer must be a torch.optim.Optimizer, got Without"
    ):
        attempt(optimizer=WithoutSteps())
    with pytest.raises(
        TypeError, match=r"SparseLoCo: method must be a setting of sparcml.local"
    ):
        attempt(SparseLoCo, method=sparcml.Dense())
    with pytest.raises(
        TypeError, match=r"DiLoCo: outer_rate must be a setting of sparcml.local"
    ):
        attempt(outer_rate=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"momentum": 0.9}, "momentum of the optimizer must be 0, got 0.9; pass decay="),
        (
            {"weight_decay": 0.1},
            "weight_decay of the optimizer must be 0, got 0.1; pass weight",
        ),
    ],
)
def test_demo_wants_plain_sgd(options, message):
    module = torch.nn.Linear(3, 2)
    with pytest.raises(ValueError, match=f"DeMo: {message}"):
        attempt(DeMo, module, torch.optim.SGD(module.parameters(), lr=0.1, **options))
    for build in (torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop):
        with pytest.raises(
            TypeError,
            match=rf"optimizer must be a torch.optim.SGD, got {build.__name__}; .*SGD\(model",
        ):
            attempt(DeMo, module, build(module.parameters(), lr=0.1))


def test_states_that_do_not_fit():
    training = attempt(sync_every=2)
    state = training.state_dict()
    with pytest.raises(ValueError, match=r"must be a result of DiLoCo.state_dict"):
        training.load_state_dict({})
    with pytest.raises(
        ValueError, match=r"must be of DiLoCo\(sync_every=3\), got DiLoCo\(sync"
    ):
        attempt(sync_every=3).load_state_dict(state)
    with pytest.raises(
        ValueError, match="world size of the state must be 1, got 4; to change"
    ):
        training.load_state_dict({**state, "ranks": 4})
    other = attempt(module=torch.nn.Linear(5, 4), sync_every=2).state_dict()
    with pytest.raises(ValueError, match="state must be of a model with 8 values, got 24"):
        training.load_state_dict(other)


@pytest.mark.torch
def test_a_ddp_model_is_refused():
    assert outcomes(1, refuses_ddp) == ["finished"]


def refuses_ddp():
    with group():
        module = DistributedDataParallel(torch.nn.Linear(3, 2))
        with pytest.raises(TypeError, match="must not be a DistributedDataParallel"):
            DiLoCo(module, torch.optim.SGD(module.parameters(), lr=0.1))
