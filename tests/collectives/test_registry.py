"""Registration of collectives: fixed numbers, their order, and the call codes."""

import pytest

from sparcml.collectives import (
    ALLREDUCES,
    COLLECTIVES,
    Algorithm,
    Collective,
    register,
    unregister,
)
from sparcml.collectives.base import call_code, call_name, call_op
from sparcml.kernels import _core

NUMBERS = {  # sent in messages: these never change
    "agree": 0,
    "allgather": 1,
    "broadcast": 2,
    "ssar_recursive_double": 3,
    "ssar_split_allgather": 4,
    "dsar_split_allgather": 5,
    "native": 6,
    "reduce": 7,
    "reduce_scatter": 8,
    "master": 9,
    "sharded": 10,
    "ring": 11,
    "recursive_double": 12,
    "halving_doubling": 13,
    "double_binary_tree": 14,
    "ssar_ring": 15,
    "barrier": 16,
    "oktopk": 17,
    "hierarchical": 18,
    "numbers": 19,
    "alltoall": 20,
    "agree_root": 21,
    "consolidate": 22,
    "neighbor_allreduce": 23,
    "neighbor_exchange": 24,
    "agree_topology": 25,
    "ssar_allgather": 26,
}


def test_numbers_are_fixed():
    assert {name: c.number for name, c in COLLECTIVES.items()} == NUMBERS
    assert list(COLLECTIVES) == list(NUMBERS)
    assert list(ALLREDUCES) == [
        n for n, c in COLLECTIVES.items() if isinstance(c, Algorithm)
    ]


def test_compiled_allreduces_have_the_registered_numbers():
    compiled = {algorithm.name: algorithm.value for algorithm in _core.Algorithm}
    assert compiled.items() <= NUMBERS.items()


def test_call_codes_are_the_collective_and_the_operation():
    assert call_code("ring", "sum") == 11 << 3
    assert call_name(call_code("oktopk", "mean")) == "allreduce (mean) by oktopk"
    assert call_op(call_code("barrier", "sum")) == "sum"
    assert call_name(31 << 3) == "unknown call 248"
    assert call_op(7) is None


@pytest.mark.parametrize(
    ("collective", "reason"),
    [
        (Collective("other", 32), "number of 'other' must be from 0 to 31, got 32"),
        (Collective("other", 11), "number 11 of collective 'other' is taken by 'ring'"),
        (Collective("ring", 30), "collective 'ring' is registered already"),
    ],
)
def test_names_and_numbers_are_unique(collective, reason):
    with pytest.raises(ValueError, match=reason):
        register(collective)
    assert list(COLLECTIVES) == list(NUMBERS)


def test_a_collective_can_be_removed():
    register(Collective("other", 30))
    assert call_name(30 << 3) == "other (sum)"
    unregister("other")
    assert "other" not in COLLECTIVES
