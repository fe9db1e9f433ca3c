"""auto: measured first, and what it decides; statistics."""

import pytest
import torch

import sparcml
from sparcml.torch import recommended
from sparcml.torch.auto import MethodSearch, RowUsage, Stage
from sparcml.torch.step_timer import StepTimes
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
    times = StepTimes(**seconds)
    found = sparcml.launch(lambda comm: MethodSearch(comm, SHAPES, times).decide(), ranks)
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

    def work(comm, shapes):
        return MethodSearch(comm, shapes, found, tables).decide()

    for decision in sparcml.launch(lambda comm: work(comm, few), 2):
        assert decision.method is None
        assert decision.why == "no hook: no dense gradient is large enough to compress"
    for decision in sparcml.launch(lambda comm: work(comm, SHAPES), 2):
        assert decision.method is not None


@pytest.mark.parametrize("kind", ["SGD", "AdamW"])
def test_only_methods_with_known_accuracy(kind):
    optimizer = getattr(torch.optim, kind)(torch.nn.Linear(2, 2).parameters(), lr=0.1)
    slow = StepTimes(step=10.0, communication=9.5, exposed=9.0, backward=0.5)

    def work(comm):
        return MethodSearch(comm, SHAPES, slow, optimizer=optimizer).decide()

    for decision in sparcml.launch(work, 2):
        text = str(decision)
        assert not any(name in text for name in ("PowerSGD", "Ok-", "TopK 1 %", "DGC"))
        if kind == "SGD":
            assert decision.method == recommended(optimizer)
        else:
            assert isinstance(decision.method, sparcml.Compressed)
            assert decision.method.sparsify is None
            assert not decision.method.error_feedback


@pytest.mark.parametrize("kind", ["SGD", "AdamW"])
def test_a_method_that_measures_slower_than_estimated_is_dropped(kind):
    """The next one is tried, and in the end the fastest of those that were measured is used."""
    optimizer = getattr(torch.optim, kind)(torch.nn.Linear(2, 2).parameters(), lr=0.1)
    slow = StepTimes(step=10.0, communication=9.5, exposed=9.0, backward=0.5)

    def work(comm):
        search = MethodSearch(comm, SHAPES, slow, optimizer=optimizer)
        chosen, steps = [], iter((8.0, 6.0, 9.0, 9.5, 9.6, 9.7))
        while not (decision := search.decide()).final:
            chosen.append(str(decision.method))
            search.record(next(steps))
        return chosen, decision

    first, second = sparcml.launch(work, 2)
    chosen, decision = first
    assert first[0] == second[0]
    assert str(first[1].method) == str(second[1].method)
    assert str(recommended(optimizer)) in chosen
    assert len(set(chosen)) == len(chosen) == len(decision.estimates) - 1
    assert str(decision.method) == chosen[1]
    assert "a step takes 6e+03 ms (measured) in place of 1e+04 ms" in decision.why
    assert all(e.stage is Stage.MEASURED for e in decision.estimates)


def test_dense_if_every_method_measures_slower():
    optimizer = torch.optim.AdamW(torch.nn.Linear(2, 2).parameters())
    slow = StepTimes(step=10.0, communication=9.5, exposed=9.0, backward=0.5)

    def work(comm):
        search = MethodSearch(comm, SHAPES, slow, optimizer=optimizer)
        while not (decision := search.decide()).final:
            search.record(9.9)
        return decision

    for decision in sparcml.launch(work, 2):
        assert decision.method is None
        assert decision.why.startswith("no compression: dense: no method is more than 5% ")


def test_one_rank_needs_nothing():
    decision = decided(1, step=1.0, communication=0.0, exposed=0.0, backward=0.5)
    assert decision.method is None
