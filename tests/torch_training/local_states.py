"""What the ranks of test_local_state.py do."""

import copy
from typing import Any

import pytest
import torch

from sparcml import MismatchError
from sparcml.torch import DiLoCo, SparseLoCo

from .models import group

H = 6
FORMS: tuple[tuple[Any, dict[str, Any]], ...] = (
    (DiLoCo, {}),
    (DiLoCo, {"fragments": 2, "delay": 1}),
    (DiLoCo, {"optimizer_state": "average"}),
    (SparseLoCo, {}),
)


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1)
    )


def run(model, optimizer, rank, first, last):
    for step in range(first, last):
        draw = torch.Generator().manual_seed(100 * step + rank)
        optimizer.zero_grad()
        model(torch.randn(8, 6, generator=draw)).square().mean().backward()
        optimizer.step()


def resume(rank):
    """A state continues bit for bit if the model is loaded before or after construction."""
    for form, options in FORMS:
        model = network()
        optimizer = torch.optim.AdamW(model.parameters(), 0.01)
        with form(model, optimizer, sync_every=H, **options) as training:
            run(model, optimizer, rank, 0, 9)
            saved = copy.deepcopy(
                (model.state_dict(), optimizer.state_dict(), training.state_dict())
            )
            run(model, optimizer, rank, 9, 16)
        expected = model.state_dict()
        for before in (True, False):
            model = network()
            optimizer = torch.optim.AdamW(model.parameters(), 0.01)
            if before:
                model.load_state_dict(saved[0])
                optimizer.load_state_dict(copy.deepcopy(saved[1]))
            with form(model, optimizer, sync_every=H, **options) as training:
                if not before:
                    model.load_state_dict(saved[0])
                    optimizer.load_state_dict(copy.deepcopy(saved[1]))
                training.load_state_dict(saved[2])
                run(model, optimizer, rank, 9, 16)
            for name, value in model.state_dict().items():
                assert torch.equal(value, expected[name]), (form, options, before, name)


def different_parameters(rank):
    """Moments of different parameters are not mixed."""
    model = torch.nn.ParameterDict({"a": torch.zeros(2), "b": torch.zeros(2)})
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    training = DiLoCo(model, optimizer, sync_every=1, optimizer_state="average")
    model["ab"[rank]].grad = torch.ones(2)
    with pytest.raises(MismatchError, match=r"different parameters \(this one of 1\)"):
        optimizer.step()
    training.close()


def everything():
    with group() as (rank, _):
        resume(rank)
        different_parameters(rank)
    return "finished"
