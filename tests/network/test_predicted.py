"""`comm.stats` has what allreduces were predicted to take beside what they took."""

import numpy as np
import pytest

import sparcml
from sparcml.collectives import ALLREDUCES
from sparcml.costs import Network
from sparcml.costs.estimate import TimePredictor, _rounded
from sparcml.transport import Nodes

LINKS = Network(100e-6, 20e-6, 8e-9)


@pytest.mark.parametrize("algorithm", ["recursive_double", "halving_doubling"])
def test_simulated_calls_take_what_was_predicted(algorithm):
    x = np.ones(4096, np.float32)

    def work(comm):
        for _ in range(3):
            comm.allreduce(x, algorithm=algorithm)
        return comm.stats.allreduces

    for found in sparcml.simulate(work, 4, LINKS).results:
        (row,) = found.values()
        assert row.calls == 3
        predictor = TimePredictor(LINKS, Nodes((0,) * 4))
        seconds = predictor.seconds(ALLREDUCES[algorithm], 4096, 4, 4096)
        assert row.predicted == pytest.approx(3 * seconds)
        assert row.measured == pytest.approx(row.predicted, rel=1e-9)


def test_every_way_to_call_is_counted_and_sends_nothing_more():
    x = sparcml.Stream(10_000, np.arange(0, 10_000, 100), np.ones(100, np.float32))

    def work(comm):
        comm.allreduce(x)
        comm.allreduce(x, algorithm="ssar_recursive_double")
        before = comm.stats.messages
        comm.allreduce(x, algorithm="ssar_recursive_double")
        sent = comm.stats.messages - before
        comm.iallreduce(x, algorithm="ssar_ring").wait()
        comm.allreduce(x, algorithm="dsar_split_allgather", quantize=sparcml.QSGD(8))
        rows = dict(comm.stats.allreduces)
        comm.stats.reset()
        return sent, rows, comm.stats.allreduces

    for sent, rows, after in sparcml.launch(work, 2):
        assert sent == 1
        assert sum(row.calls for row in rows.values()) == 5
        assert {"ssar_recursive_double", "ssar_ring", "dsar_split_allgather"} <= set(rows)
        assert all(row.predicted > 0 and row.measured > 0 for row in rows.values())
        assert after == {}


def test_alone_nothing_is_predicted():
    def work(comm):
        comm.allreduce(np.ones(3, np.float32))
        return comm.stats.allreduces

    assert sparcml.launch(work, 1) == [{}]


def test_numbers_that_stand_for_others_are_near_and_few():
    numbers = range(5000)
    assert all(abs(_rounded(n) - n) * 32 <= n for n in numbers)
    assert len({_rounded(n) for n in numbers}) < 200
    assert [_rounded(n) for n in range(32)] == list(range(32))
