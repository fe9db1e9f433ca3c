"""Large batches: schedulers of torch, and LARS, LAMB and SAM of another package."""

import pytest
import torch

pytest.importorskip("pytorch_optimizer")

from sparcml.torch import recommended
from tests.torch_engine.jobs import outcomes

from . import recipes

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    "body",
    [
        recipes.with_a_hook,
        recipes.around_an_optimizer,
        recipes.sam_by_hand,
        recipes.linear_scaling,
    ],
)
def test_on_two_ranks(body):
    assert outcomes(2, body) == ["finished"] * 2


def test_what_is_inside_decides_on_the_method():
    import pytorch_optimizer

    parameters = list(torch.nn.Linear(2, 2).parameters())
    for kind in (torch.optim.SGD, torch.optim.AdamW):
        expected = recommended(kind(parameters, lr=0.1))
        inside = pytorch_optimizer.Lookahead(kind(parameters, lr=0.1))
        assert recommended(inside) == expected
        inside = pytorch_optimizer.SAM(parameters, base_optimizer=kind, lr=0.1)
        assert recommended(inside) == expected
