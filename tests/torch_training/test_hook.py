"""The DDP hook with real processes."""

import re
import signal

import pytest

from sparcml import Compressed, Dense, TopK
from tests.torch_engine.jobs import outcomes

from . import hooking

pytestmark = pytest.mark.torch
TOPK = Compressed(TopK(0.05))


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_dense_is_plain_ddp(ranks):
    assert outcomes(ranks, hooking.dense_is_plain_ddp) == ["finished"] * ranks


@pytest.mark.parametrize(
    "body",
    [
        hooking.every_method_conserves,
        hooking.other_kinds_of_models,
        hooking.rules,
        hooking.refusals,
    ],
)
def test_on_two_ranks(body):
    assert outcomes(2, body, patience=90) == ["finished"] * 2


@pytest.mark.parametrize("method", [Dense(), TOPK])
def test_a_gradient_that_is_not_finite_is_named_on_all_ranks(method):
    said = outcomes(3, hooking.nan_on_rank_1, method)
    for word in said:
        assert re.search("rank 1: the gradient of '2.weight' has .*NaN", word or ""), said


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("method", [Dense(), TOPK])
def test_a_rank_that_fails_in_mid_step_ends_the_others(method, number):
    said = outcomes(
        3, hooking.fails_in_mid_step, method, number, bad=1, SPARCML_TIMEOUT="1"
    )
    for word in (said[0], said[2]):
        assert re.match("TransportError: .*rank 1", word or ""), said
        if number == signal.SIGSTOP:
            assert "rank 1 has not answered for 1 s (its process is stopped)" in str(word)


def test_a_rank_that_evaluates_is_waited_for():
    said = outcomes(2, hooking.evaluates_on_rank_0, SPARCML_TIMEOUT="0.3")
    assert said == ["finished"] * 2


def test_a_rank_that_does_not_call_compress_is_named():
    limits = {"SPARCML_TIMEOUT": "0.2", "SPARCML_START_TIMEOUT": "4"}
    said = outcomes(3, hooking.one_rank_without_compress, **limits)
    assert said[1] == "finished", said
    for word in (said[0], said[2]):
        expected = "MismatchError: compress: rank 1 of 3 has not called compress within 4 s"
        assert (word or "").startswith(expected), said


@pytest.mark.parametrize("function", ["compress", "wrap"])
def test_arguments_that_differ_are_noticed(function):
    assert outcomes(3, hooking.other_arguments, function) == ["finished"] * 3


def test_a_state_that_only_one_rank_consolidates():
    said = outcomes(3, hooking.consolidated_on_rank_1_only, SPARCML_TIMEOUT="3")
    for word in said:
        assert re.match("MismatchError: .*rank 1 is in call", word or ""), said
        assert "state_dict(consolidate=True)" in (word or "")
