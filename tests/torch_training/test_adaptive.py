"""Methods that know the optimizer: updates of Adam, learning rates, recommendations."""

import pytest

from tests.torch_engine.jobs import outcomes

from . import adaptive

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    "body",
    [
        adaptive.as_adamw_until_the_freeze,
        adaptive.as_with_wrap,
        adaptive.sending_all_updates,
        adaptive.resumed,
        adaptive.changed,
        adaptive.second_phase,
        adaptive.fenced,
        adaptive.rates_are_followed,
        adaptive.rates_that_rise_again,
        adaptive.recommendations,
    ],
)
def test_on_two_ranks(body):
    assert outcomes(2, body) == ["finished"] * 2
