"""The optimizer wrapper, and sparse gradients by it and by DDP."""

import pytest

from tests.torch_engine.jobs import outcomes

from . import optimizing

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    "body",
    [
        optimizing.as_with_ddp,
        optimizing.scaled,
        optimizing.with_embeddings,
        optimizing.memory_follows_the_rows,
    ],
)
def test_on_two_ranks(body):
    assert outcomes(2, body) == ["finished"] * 2
