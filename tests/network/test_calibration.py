"""Tuning: samples of known weights give them back, and real sums are fitted."""

from dataclasses import replace
from itertools import product

import pytest

import sparcml
from sparcml.collectives import ALLREDUCES
from sparcml.costs import Calibration, Network, Workload
from sparcml.costs.estimate import estimate
from sparcml.network import probe_algorithms as tuning
from sparcml.network.probe import probe
from sparcml.network.probe_algorithms import POINTS, Sample, calibrate
from sparcml.network.store import from_json
from sparcml.transport import Nodes

RANKS = 8
NODES = Nodes(tuple(range(RANKS)))
WEIGHTS = (
    Calibration("ssar_recursive_double", 2e-3, 3.0, 1.5, 2.0),
    Calibration("ssar_split_allgather", 1e-3, 2.0, 0.9, 5.0),
    Calibration("native", 0.0, 1.0, 2.0, 4.0),
)
BASE = Network(latency=5e-4, overhead=1e-4, seconds_per_byte=8e-8)


def seconds(network, name, size, nnz):
    workload = Workload(size, 4, (nnz,) * RANKS)
    return estimate(ALLREDUCES[name], workload, network).seconds


@pytest.mark.parametrize("burst", [0.0, float(1 << 17)])
def test_samples_of_known_weights_are_predicted(burst):
    truth = replace(BASE, burst=burst, calibration=WEIGHTS)
    names = [tuned.algorithm for tuned in WEIGHTS]
    samples = [
        Sample(
            name, size, int(size * density), seconds(truth, name, size, int(size * density))
        )
        for name, (size, density) in product(names, POINTS)
    ]
    found = calibrate(samples, BASE, NODES)
    assert found.burst == burst
    assert set(found.misfits) == set(names)
    assert max(found.misfits.values()) < 0.02
    ours = replace(BASE, burst=found.burst, calibration=found.calibrations)
    for name, size in product(names, (1 << 18, 1 << 24)):  # others than those of samples
        want = seconds(truth, name, size, size // 50)
        assert seconds(ours, name, size, size // 50) == pytest.approx(want, rel=0.05)


def test_ranks_measure_sums_and_agree(monkeypatch):
    monkeypatch.setattr(tuning, "POINTS", ((1 << 10, 0.01), (1 << 12, 0.1), (1 << 14, 0.1)))
    steps: list[str] = []

    def work(comm):
        found = []

        def measure(transport):
            told = steps.append if comm.rank == 0 else lambda _: None
            found.append(probe(transport, progress=told))
            return found[0]

        network = comm.recalibrate(measure)
        total = comm.allreduce(sparcml.Stream(100, [comm.rank], [1.0]))
        return network, found[0], total.to_dense().sum()

    (one, measurement, total), (other, _, _) = sparcml.launch(work, 2)
    flat = [
        name
        for name, algorithm in ALLREDUCES.items()
        if not (algorithm.multi_node or algorithm.quantized_only)
    ]
    assert one == other
    assert (
        [tuned.algorithm for tuned in one.calibration]
        == flat
        == list(measurement.allreduce_misfits)
    )
    assert steps[:2] == ["messages", "kernels"]
    assert len(steps) == 2 + 3 * tuning.SWEEPS
    assert from_json(measurement.to_json()) == measurement
    assert total == 2
