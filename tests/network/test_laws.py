"""The laws of the collectives on simulated ranks, over the whole roster."""

import pytest

import sparcml

from .. import call_laws, laws, rosters
from ..aggregate import gradients


def simulate(body, ranks):
    sparcml.simulate(body, ranks, "100gbit", trace=0)


@pytest.mark.parametrize("ranks", rosters.RANKS)
@pytest.mark.parametrize("algorithm", ["auto", *rosters.LOSSLESS])
def test_same_sum(algorithm, ranks):
    def body(comm):
        for op in rosters.OPS if ranks in (3, 8) else ["sum"]:
            for case in laws.CASES:
                laws.same_sum(comm, algorithm, case, op)

    simulate(body, ranks)


@pytest.mark.parametrize("algorithm", ["auto", *rosters.LOSSLESS])
def test_integers(algorithm):
    def body(comm):
        for case in laws.INTEGERS:
            for op in rosters.OPS:
                laws.same_sum(comm, algorithm, case, op)

    simulate(body, 4)


@pytest.mark.parametrize("ranks", rosters.RANKS)
@pytest.mark.parametrize("algorithm", rosters.LOSSY)
def test_same_sum_of_those_that_choose(algorithm, ranks):
    def body(comm):
        for case in laws.ROOM_FOR_ALL:
            laws.same_sum(comm, algorithm, case)
        for case in laws.CASES:
            laws.largest_sums(comm, algorithm, case)

    simulate(body, ranks)


@pytest.mark.parametrize("ranks", rosters.RANKS)
@pytest.mark.parametrize("algorithm", rosters.COUNTED)
def test_same_bits(algorithm, ranks):
    def body(comm):
        for op in [op for name, op in rosters.REDUCTIONS if name == algorithm]:
            laws.same_bits(comm, algorithm, op)

    simulate(body, ranks)


@pytest.mark.parametrize("op", rosters.OPS)
def test_nan_stays(op):
    simulate(lambda comm: laws.nan_stays(comm, "auto", op), 4)


@pytest.mark.parametrize("ranks", [3, 8])
@pytest.mark.parametrize("algorithm", rosters.COUNTED)
def test_declared_cost_is_counted_cost(algorithm, ranks):
    def body(comm):
        for case in laws.CASES:
            laws.declared_cost(comm, algorithm, case)

    simulate(body, ranks)


@pytest.mark.parametrize("ranks", rosters.RANKS)
@pytest.mark.parametrize("algorithm", rosters.COMPUTED)
def test_declared_cost_is_computed_cost(algorithm, ranks):
    def body(comm):
        for case in laws.CASES:
            laws.computed_cost(comm, algorithm, case)

    simulate(body, ranks)


@pytest.mark.parametrize("name", rosters.METHODS)
def test_nothing_is_lost(name):
    simulate(lambda comm: gradients.conserves(comm, name), 4)


@pytest.mark.parametrize("law", call_laws.CALLS)
def test_calls(law):
    simulate(law, 4)
