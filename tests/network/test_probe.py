"""Probing: a simulated network gives its costs back; real ranks agree on what they find."""

from functools import partial

import numpy as np
import pytest

import sparcml
from sparcml.costs import COSTS, Network
from sparcml.network.probe import probe

LINKS = Network(100e-6, 20e-6, 8e-9)
FAST = Network(
    2e-6,
    0.5e-6,
    1e-10,
    seconds_per_encoded=3e-9,
    seconds_per_merged=1e-9,
    seconds_per_written=2e-10,
)


def costs(network):
    return [getattr(network, name) for name in COSTS]


@pytest.mark.slow
@pytest.mark.parametrize("network", [LINKS, FAST], ids=["slow", "fast"])
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_a_simulated_network_gives_its_costs_back(ranks, network):
    def work(comm):
        before = comm.network
        return before, comm.recalibrate(), comm.network

    sim = sparcml.simulate(work, ranks, network)
    for before, found, after in sim.results:
        assert before == network
        assert found is after
        assert costs(found) == pytest.approx(costs(network), rel=1e-6)
        assert found == sim.results[0][1]
        assert found.source.endswith(f"{ranks} ranks on virtual")


def test_requests_and_later_communicators_follow():
    def work(comm):
        old = comm.duplicate()
        x = np.ones(100, np.float32)
        first = comm.iallreduce(x)
        found = comm.recalibrate()
        second = comm.iallreduce(x)
        sums = [first.wait()[0], second.wait()[0], comm.allreduce(x)[0]]
        return sums, old.network == found, comm.duplicate().network == found

    for sums, old, new in sparcml.simulate(work, 3, "1gbit").results:
        assert sums == [3, 3, 3]
        assert not old
        assert new


def test_alone_there_is_nothing_to_measure():
    def work(comm):
        before = comm.network
        return comm.recalibrate() is before

    assert sparcml.launch(work, 1) == [True]


@pytest.mark.slow
def test_threads_agree_on_what_they_find():
    quick = partial(probe, quick=True)
    found = sparcml.launch(lambda comm: comm.recalibrate(quick), 2)
    assert found[0] == found[1]
    assert all(cost >= 0 for cost in costs(found[0]))
    assert "2 ranks on threads" in found[0].source
