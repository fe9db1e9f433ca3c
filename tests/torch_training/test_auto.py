"""auto: measured first, and what it decides; statistics."""

import pytest

import sparcml
from sparcml.torch.auto import RowUsage, StepTimes, decide
from tests.torch_engine.jobs import outcomes

from . import choosing

pytestmark = pytest.mark.torch
SHAPES = {"weight": (200, 300), "bias": (300,)}


@pytest.mark.parametrize(
    "body",
    [
        choosing.as_it_is_measured,
        choosing.on_a_slow_network,
        choosing.with_a_table,
        choosing.figures,
    ],
)
def test_on_two_ranks(body):
    assert outcomes(2, body) == ["finished"] * 2


def decided(ranks, **seconds):
    found = sparcml.launch(lambda comm: decide(comm, SHAPES, StepTimes(**seconds)), ranks)
    assert len({str(decision.method) for decision in found}) == 1
    return found[0]


def test_nothing_is_gained_where_nothing_is_waited_for():
    decision = decided(3, step=1.0, communication=1e-5, exposed=0.0, backward=0.5)
    assert decision.method is None
    assert decision.why.startswith("no hook: dense")


def test_a_method_where_sums_take_most_of_the_step():
    decision = decided(3, step=10.0, communication=9.5, exposed=9.0, backward=0.5)
    assert decision.method is not None
    assert "in place of 1e+04 ms" in decision.why
    assert "QSGD" in str(decision)


def test_rows_of_tables_count_as_they_take_time():
    """They are no part of what a method saves: a step of tables alone stays as it is."""
    found = StepTimes(step=10.0, communication=9.5, exposed=9.0, backward=0.5)
    tables = {"table": RowUsage((1000, 16), 20)}
    few = {"weight": (10, 20), "bias": (30_000,)}
    for decision in sparcml.launch(lambda comm: decide(comm, few, found, tables), 2):
        assert decision.method is None
        assert decision.why == "no hook: no dense gradient is large enough to compress"
    for decision in sparcml.launch(lambda comm: decide(comm, SHAPES, found, tables), 2):
        assert decision.method is not None


def test_one_rank_needs_nothing():
    decision = decided(1, step=1.0, communication=0.0, exposed=0.0, backward=0.5)
    assert decision.method is None
