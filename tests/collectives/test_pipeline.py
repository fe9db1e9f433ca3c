"""Dense ranges in segments: the same results, and the declared messages."""

import numpy as np
import pytest

import sparcml
from sparcml.collectives import pipeline
from sparcml.costs.workload import EntryCount

from .. import laws

PIPELINED = ("master", "ring", "recursive_double", "halving_doubling")
SEGMENT = 1024  # bytes


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Use short segments, so that the cases of the laws have several."""
    monkeypatch.setattr(pipeline, "SEGMENT_BYTES", SEGMENT)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3, 4, 7])
@pytest.mark.parametrize("algorithm", PIPELINED)
def test_same_sum_and_cost(algorithm, ranks):
    def body(comm):
        for case in laws.CASES:
            laws.same_sum(comm, algorithm, case)
            laws.declared_cost(comm, algorithm, case)

    sparcml.launch(body, ranks)


@pytest.mark.parametrize("ranks", [3, 4])
@pytest.mark.parametrize("algorithm", PIPELINED)
def test_same_bits(algorithm, ranks):
    sparcml.launch(lambda comm: laws.same_bits(comm, algorithm, "sum"), ranks)


@pytest.mark.parametrize("ranks", [2, 3, 5])
@pytest.mark.parametrize("algorithm", PIPELINED)
def test_the_input_is_unchanged_and_a_result_outlives_the_next_call(algorithm, ranks):
    def body(comm):
        x = np.arange(1000, dtype=np.float32) * (comm.rank + 1)
        before = x.copy()
        first = comm.allreduce(x, algorithm=algorithm)
        copy = first.copy()
        comm.allreduce(-x, algorithm=algorithm)
        np.testing.assert_array_equal(x, before)
        np.testing.assert_array_equal(first, copy)

    sparcml.launch(body, ranks)


def test_segments_cover_a_range_and_are_short():
    for blocks in (0, 1, 255, 256, 257, 9999):
        offsets = pipeline.segment_offsets(blocks, 4)
        assert offsets[0] == 0
        assert offsets[-1] == blocks
        assert max(np.diff(offsets)) * 4 <= SEGMENT


def test_a_segment_has_at_least_one_block():
    assert pipeline.segment_offsets(3, 5000) == [0, 1, 2, 3]


def test_part_of_an_entry_count():
    count = EntryCount(90, 95.0, 100, 100)
    assert count.part(100) is count
    assert count.part(50) == EntryCount(40, 47.5, 50, 50)
