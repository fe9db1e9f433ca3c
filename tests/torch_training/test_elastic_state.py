"""Workers of elastic rounds that are started again from their states, on processes."""

import pytest

from tests.torch_engine.jobs import outcomes

from . import elastic_states

pytestmark = pytest.mark.torch


def test_a_worker_that_was_killed_continues_from_its_state(tmp_path):
    said = outcomes(4, elastic_states.one_is_killed_and_starts_again, tmp_path, bad=2)
    assert said == ["finished", "finished", None, "finished"]


def test_all_workers_continue_from_their_states():
    assert outcomes(3, elastic_states.all_start_again) == ["finished"] * 3


def test_workers_with_different_settings_raise():
    for word in outcomes(2, elastic_states.settings_differ):
        assert word is not None
        assert word.startswith("MismatchError: step: rank ")
        assert "differ in method; all ranks must pass the same settings" in word


def test_states_that_do_not_fit():
    assert outcomes(1, elastic_states.refusals) == ["finished"]


def test_a_worker_on_arrays_continues_from_its_file(tmp_path):
    assert outcomes(1, elastic_states.saves_arrays, tmp_path) == ["finished"]
