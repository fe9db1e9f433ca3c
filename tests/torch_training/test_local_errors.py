"""Law 7 in local training: an exception on one rank reaches the others with its text."""

import re

import pytest

from tests.torch_engine.jobs import outcomes

from . import local_errors
from .local_errors import BAD, STEPS

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    ("options", "after"),
    [
        ({"sync_every": 3}, 4),  # the others wait at the end of the second round
        ({"sync_every": 4, "fragments": 2, "delay": 1}, 5),  # an exchange is in flight
        ({"sync_every": 3, "synchronous_steps": 4}, 2),  # gradients are averaged
        ({"sync_every": 100}, STEPS),  # the others complete the round
    ],
)
def test_an_exception_in_the_block_is_raised_on_all_ranks(options, after):
    said = outcomes(3, local_errors.raises, options, after)
    assert said.pop(BAD) == "ValueError: no such luck"
    for word in said:
        assert re.match(
            rf"TransportError: rank {BAD} raised ValueError: no such luck (after|in) \w+",
            word or "",
        ), said
        assert "\n" not in (word or "")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (3, rf"rank {BAD} raised SystemExit: 3"),
        (0, rf"rank {BAD} has closed (its connection|the communicator), and rank 0 still"),
    ],
)
def test_a_rank_that_leaves_the_block_by_exit(code, message):
    said = outcomes(2, local_errors.exits, code)
    assert said[BAD] == f"SystemExit: {code}"
    assert re.match(f"TransportError: {message}", said[0] or ""), said


def test_a_grad_scaler_is_refused():
    for word in outcomes(2, local_errors.scales):
        assert "DiLoCo: optimizer.step() must not be called by a GradScaler" in (word or "")


def test_a_fused_optimizer_with_a_grad_scaler_is_refused_in_a_synchronous_start():
    assert outcomes(2, local_errors.fused, 0) == ["finished"] * 2
    for word in outcomes(2, local_errors.fused, 2):
        assert (
            "DiLoCo: optimizer must not be fused with a GradScaler in a synchronous start"
        ) in (word or "")


def test_an_infinite_gradient_in_a_synchronous_start():
    said = outcomes(2, local_errors.overflows)
    for word in said:
        assert re.search(
            r"DiLoCo: gradients must be finite in a synchronous start, got \d+ values of "
            rf"'\S+' on rank {BAD} .* or pass synchronous_method=sparcml.Dense\(nonfinite=",
            word or "",
        ), said
        assert "scaler=" not in (word or "")
