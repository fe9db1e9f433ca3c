"""compress and wrap with Lightning, torch.compile, copies and other kinds of parallelism."""

import pytest

from tests.torch_engine.jobs import outcomes

from . import composing

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("body", [composing.as_others_do, composing.named_and_refused])
def test_on_two_ranks(body):
    assert outcomes(2, body, patience=90) == ["finished"] * 2
