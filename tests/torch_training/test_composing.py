"""compress and wrap with Lightning, torch.compile, copies and other kinds of parallelism."""

import pytest

from tests.torch_engine.jobs import outcomes

from . import composing

pytestmark = pytest.mark.torch


def test_on_two_ranks():
    assert outcomes(2, composing.as_others_do, patience=90) == ["finished"] * 2
