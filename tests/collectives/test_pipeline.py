"""Dense ranges in pieces: the same sums, and as many messages as declared."""

import numpy as np
import pytest

import sparcml
from sparcml.collectives import pipeline
from sparcml.costs.workload import EntryCount

from .. import laws

CUT = ("master", "ring", "recursive_double", "halving_doubling")
LENGTH = 1024  # bytes


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Pieces of few bytes, so that cases of the laws have several."""
    monkeypatch.setattr(pipeline, "SEGMENT_BYTES", LENGTH)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3, 4, 7])
@pytest.mark.parametrize("algorithm", CUT)
def test_same_sum_and_cost(algorithm, ranks):
    def body(comm):
        for case in laws.CASES:
            laws.same_sum(comm, algorithm, case)
            laws.declared_cost(comm, algorithm, case)

    sparcml.launch(body, ranks)


@pytest.mark.parametrize("ranks", [3, 4])
@pytest.mark.parametrize("algorithm", CUT)
def test_same_bits(algorithm, ranks):
    sparcml.launch(lambda comm: laws.same_bits(comm, algorithm, "sum"), ranks)


@pytest.mark.parametrize("ranks", [2, 3, 5])
@pytest.mark.parametrize("algorithm", CUT)
def test_the_input_stays_and_a_result_outlives_the_next_call(algorithm, ranks):
    def body(comm):
        x = np.arange(1000, dtype=np.float32) * (comm.rank + 1)
        before = x.copy()
        first = comm.allreduce(x, algorithm=algorithm)
        kept = first.copy()
        comm.allreduce(-x, algorithm=algorithm)
        np.testing.assert_array_equal(x, before)
        np.testing.assert_array_equal(first, kept)

    sparcml.launch(body, ranks)


def test_pieces_cover_a_range_and_are_short():
    for blocks in (0, 1, 255, 256, 257, 9999):
        edges = pipeline.segment_offsets(blocks, 4)
        assert edges[0] == 0
        assert edges[-1] == blocks
        assert max(np.diff(edges)) * 4 <= LENGTH


def test_a_piece_larger_than_the_limit_is_one_entry():
    assert pipeline.segment_offsets(3, 5000) == [0, 1, 2, 3]


def test_a_part_of_a_load():
    load = EntryCount(90, 95.0, 100, 100)
    assert load.part(100) is load
    assert load.part(50) == EntryCount(40, 47.5, 50, 50)
