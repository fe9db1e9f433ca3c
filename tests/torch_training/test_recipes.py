"""Large batches: schedulers of torch, and LARS, LAMB and SAM of another package."""

import pytest

pytest.importorskip("pytorch_optimizer")

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
