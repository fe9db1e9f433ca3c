"""Calibration: each weight changes its own part of one algorithm's cost."""

from dataclasses import replace

import numpy as np
import pytest

import sparcml
from sparcml.collectives import ALLREDUCES
from sparcml.communicator.selection import choose
from sparcml.costs import Calibration, Network, Workload
from sparcml.costs.estimate import CostEstimate, estimate

NETWORK = Network()
WORKLOAD = Workload(1 << 20, 4, (10_000,) * 8)
FLAT = [name for name, algorithm in ALLREDUCES.items() if not algorithm.multi_node]


def seconds(name, network):
    return estimate(ALLREDUCES[name], WORKLOAD, network).seconds


def test_ranks_that_are_threads_compute_an_estimate_once():
    calls = []

    def rounds(rank, workload):
        calls.append(rank)
        return ALLREDUCES["ring"].cost(rank, workload)

    counted = replace(ALLREDUCES["ring"], cost=rounds)
    found = sparcml.launch(lambda comm: estimate(counted, WORKLOAD, NETWORK), 4)
    assert sorted(calls) == list(range(8))  # each rank of the workload, once
    assert len(set(found)) == 1


@pytest.mark.parametrize("name", FLAT)
def test_the_parts_add_up_to_the_cost(name):
    declared = CostEstimate(ALLREDUCES[name], WORKLOAD)
    parts = NETWORK.parts(declared.nbytes, declared.seconds)
    # In trees, the rank that waits longest and the one that sends most may differ.
    assert sum(parts) >= declared.seconds(NETWORK) * (1 - 1e-9)
    if name != "double_binary_tree":
        assert sum(parts) == pytest.approx(declared.seconds(NETWORK))


def test_weights_apply_to_their_algorithm_only():
    calibrated = replace(NETWORK, calibration=(Calibration("ring", 0.5, 1, 1, 1),))
    assert seconds("ring", calibrated) == pytest.approx(seconds("ring", NETWORK) + 0.5)
    assert seconds("ssar_ring", calibrated) == seconds("ssar_ring", NETWORK)


def test_each_weight_has_its_part():
    declared = CostEstimate(ALLREDUCES["ring"], WORKLOAD)
    parts = NETWORK.parts(declared.nbytes, declared.seconds)
    for i, part in enumerate(parts):
        weights = [0.0, 0.0, 0.0]
        weights[i] = 3.0
        calibration = Calibration("ring", 0.0, *weights)
        weighted = seconds("ring", replace(NETWORK, calibration=(calibration,)))
        assert part > 0
        assert weighted == pytest.approx(3 * part)


def test_bytes_of_a_burst_take_no_time():
    nbytes = CostEstimate(ALLREDUCES["ring"], WORKLOAD).nbytes
    links_only = Calibration("ring", 0.0, 0.0, 1.0, 0.0)
    times = [
        seconds("ring", replace(NETWORK, burst=share * nbytes, calibration=(links_only,)))
        for share in (0, 0.25, 1, 2)
    ]
    assert times == pytest.approx([times[0], 0.75 * times[0], 0, 0])


def test_auto_uses_calibrations():
    usual = choose(WORKLOAD, NETWORK, tuple(FLAT))
    slow = replace(NETWORK, calibration=(Calibration(usual, 10.0, 1, 1, 1),))
    assert choose(WORKLOAD, slow, tuple(FLAT)) != usual


def test_dense_algorithms_are_considered_once_calibrated():
    others = tuple(Calibration(name, 1.0, 1, 1, 1) for name in FLAT if name != "ring")
    quick = replace(NETWORK, calibration=(*others, Calibration("ring", 0.0, 0, 0, 0)))
    assert choose(WORKLOAD, quick, tuple(FLAT)) == "ring"
    assert choose(WORKLOAD, NETWORK, tuple(FLAT)) != "ring"


def test_explain_on_one_rank():
    texts = sparcml.launch(lambda comm: str(comm.explain(np.ones(10))), 1)
    assert texts == ["one rank: nothing is sent"]


@pytest.mark.parametrize("cost", [float("nan"), -1.0, float("inf")])
def test_costs_are_finite(cost):
    with pytest.raises(ValueError, match="latency must be finite"):
        sparcml.simulate(lambda comm: comm.rank, 2, Network(latency=cost))
