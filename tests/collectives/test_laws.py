"""The laws for every algorithm of the roster, on threads."""

import pytest

import sparcml

from .. import call_laws, laws, rosters


@pytest.mark.parametrize("ranks", rosters.RANKS)
@pytest.mark.parametrize("algorithm", ["auto", *rosters.LOSSLESS])
def test_same_sum(algorithm, ranks):
    def body(comm):
        for case in laws.CASES:
            laws.same_sum(comm, algorithm, case)

    sparcml.launch(body, ranks)


@pytest.mark.parametrize("ranks", rosters.RANKS)
@pytest.mark.parametrize("algorithm", rosters.LOSSY)
def test_same_sum_of_lossy_algorithms(algorithm, ranks):
    def body(comm):
        for case in laws.ROOM_FOR_ALL:
            laws.same_sum(comm, algorithm, case)
        for case in laws.CASES:
            laws.largest_sums(comm, algorithm, case)

    sparcml.launch(body, ranks)


@pytest.mark.parametrize("op", ["min", "max", "prod"])
@pytest.mark.parametrize("ranks", rosters.RANKS)
@pytest.mark.parametrize("algorithm", ["auto", *rosters.LOSSLESS])
def test_same_reduction(algorithm, ranks, op):
    def body(comm):
        for case in laws.CASES:
            laws.same_sum(comm, algorithm, case, op)

    sparcml.launch(body, ranks)


@pytest.mark.parametrize("ranks", rosters.RANKS)
@pytest.mark.parametrize("algorithm", ["auto", *rosters.LOSSLESS])
def test_integers(algorithm, ranks):
    def body(comm):
        for case in laws.INTEGERS:
            for op in rosters.OPS:
                laws.same_sum(comm, algorithm, case, op)

    sparcml.launch(body, ranks)


@pytest.mark.parametrize("ranks", [1, 4])
@pytest.mark.parametrize(
    ("algorithm", "op"), [*(("auto", op) for op in rosters.OPS), *rosters.REDUCTIONS]
)
def test_nan_stays(algorithm, ranks, op):
    sparcml.launch(lambda comm: laws.nan_stays(comm, algorithm, op), ranks)


@pytest.mark.parametrize("ranks", rosters.RANKS)
@pytest.mark.parametrize(("algorithm", "op"), rosters.REDUCTIONS)
def test_same_bits(algorithm, ranks, op):
    sparcml.launch(lambda comm: laws.same_bits(comm, algorithm, op), ranks)


@pytest.mark.parametrize("ranks", rosters.RANKS)
@pytest.mark.parametrize("algorithm", rosters.COUNTED)
def test_declared_cost_is_counted_cost(algorithm, ranks):
    def body(comm):
        for case in laws.CASES:
            laws.declared_cost(comm, algorithm, case)

    sparcml.launch(body, ranks)


@pytest.mark.parametrize("ranks", rosters.RANKS)
@pytest.mark.parametrize("algorithm", rosters.COMPUTED)
def test_declared_cost_is_computed_cost(algorithm, ranks):
    def body(comm):
        for case in laws.CASES:
            laws.computed_cost(comm, algorithm, case)

    sparcml.launch(body, ranks)


@pytest.mark.parametrize("ranks", rosters.RANKS)
@pytest.mark.parametrize("law", call_laws.CALLS)
def test_calls(law, ranks):
    sparcml.launch(law, ranks)
