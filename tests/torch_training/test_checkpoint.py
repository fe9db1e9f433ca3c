"""States: resumed bit for bit, on other numbers of ranks, under other methods."""

import pytest

from tests.torch_engine.jobs import outcomes

from . import checkpoints

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("ranks", [2, 3])
def test_the_same_number_of_ranks_resumes_bit_for_bit(ranks):
    assert outcomes(ranks, checkpoints.resume_bit_for_bit) == ["finished"] * ranks


def test_nothing_is_lost_on_another_number_of_ranks(tmp_path):
    assert outcomes(3, checkpoints.save, str(tmp_path)) == ["finished"] * 3
    for ranks in (1, 2):
        said = outcomes(ranks, checkpoints.load_elsewhere, str(tmp_path), 3)
        assert said == ["finished"] * ranks


@pytest.mark.parametrize(
    "body", [checkpoints.changed_in_mid_run, checkpoints.refusals, checkpoints.scaled]
)
def test_on_two_ranks(body):
    assert outcomes(2, body) == ["finished"] * 2
