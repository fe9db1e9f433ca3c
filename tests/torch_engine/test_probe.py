"""Networks of torch.distributed: probed, and the same on all ranks."""

import pytest

from . import probing
from .jobs import outcomes

pytestmark = pytest.mark.torch


def test_ranks_agree_on_what_they_find():
    assert outcomes(3, probing.agree_on_what_they_find) == ["finished"] * 3


def test_rank_0_decides_for_all():
    assert outcomes(3, probing.take_the_network_of_rank_0) == ["finished"] * 3


def test_what_rank_0_cannot_use_raises_everywhere():
    for said in outcomes(2, probing.hear_of_a_wrong_name):
        assert said is not None
        assert said.startswith("ValueError: SPARCML_NETWORK: network: name must be one of")
