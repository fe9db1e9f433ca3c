"""Steps of local training in which gradients are averaged, where ranks use different parameters."""

import pytest

from tests.torch_engine.jobs import outcomes

from . import starting


@pytest.mark.torch
def test_parameters_that_ranks_do_not_use():
    assert outcomes(3, starting.everything) == ["finished"] * 3
