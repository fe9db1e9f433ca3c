"""A simulation depends on nothing but the program: bits, times and traces."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sparcml
from sparcml import Stream
from sparcml.collectives import ALLREDUCES
from sparcml.network import ExponentialDelay, Gaussian

from .. import laws, rosters
from ..traces import check, total

METHOD = sparcml.Compressed(sparcml.TopK(0.05), sparcml.QSGD(bits=4))


def train(comm):
    """A few steps of a program that does a little of everything."""
    rng = np.random.default_rng(comm.rank)
    state = METHOD.init(3000)
    total = np.zeros(3000, np.float32)
    for _ in range(3):
        comm.advance(1e-3)
        mean, state = METHOD.aggregate(comm, rng.standard_normal(3000, np.float32), state)
        request = comm.iallreduce(mean[:100])
        comm.advance(1e-4)
        total += mean
        total[:100] += request.wait()
    return total.tobytes()


def run():
    return sparcml.simulate(
        train, 6, "10gbit", ranks_per_node=2, stragglers=ExponentialDelay(1e-3), seed=3
    )


def test_two_runs_are_the_same():
    first, again = run(), run()
    assert first == again
    assert first.trace == again.trace
    assert len(set(first.results)) == 1


def test_another_process_does_the_same():
    code = """
import hashlib
from tests.network.test_reproducible import run
sim = run()
print(sim.seconds, hashlib.sha256(repr((sim.results, sim.trace)).encode()).hexdigest())
"""
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
    assert found.pop().startswith(f"{run().seconds} ")


@pytest.mark.parametrize("algorithm", rosters.COUNTED)
def test_the_bits_are_those_of_real_ranks(algorithm):
    """Whatever the network, and whoever is late."""

    def work(comm):
        rng = np.random.default_rng(comm.rank)
        comm.advance(1e-3 * (comm.rank * 7 % 5))
        places = np.flatnonzero(rng.random(5000) < 0.1)
        x = Stream(5000, places, rng.standard_normal(len(places)))
        return laws.fingerprint(comm.allreduce(x, algorithm=algorithm)).tobytes()

    want = sparcml.launch(work, 5)
    near = 5 if ALLREDUCES[algorithm].multi_node else 1  # threads share a node
    for network in ("gige", "aries", "1mbit,1s"):
        sim = sparcml.simulate(
            work, 5, network, ranks_per_node=near, stragglers=Gaussian(0.01)
        )
        assert sim.results == want


def test_it_says_what_it_was():
    sim = sparcml.simulate(lambda comm: comm.advance(0.25), 3)
    assert repr(sim) == "Simulation(ranks=3, seconds=0.25, bytes=0, messages=0)"


def test_another_seed_gives_other_delays():
    def work(comm):
        comm.advance(1.0)
        comm.advance(1.0)

    def times(seed):
        return sparcml.simulate(work, 4, stragglers=Gaussian(0.1), seed=seed).rank_seconds

    first = times(1)
    assert times(1) == first
    assert times(2) != first
    assert len(set(first)) == 4


def test_the_trace_is_that_of_real_runs(tmp_path):
    def work(comm):
        comm.advance(1e-3)
        request = comm.iallreduce(np.ones(1000, np.float32), algorithm="ring")
        comm.advance(1e-4)
        comm.allreduce(np.ones(100, np.float32), algorithm="sharded")
        request.wait()

    sim = sparcml.simulate(work, 6)
    path = tmp_path / "sim.json"
    path.write_text(json.dumps(sim.trace))
    events = check(path, 6)
    assert {e["name"] for e in events} >= {"compute", "ring", "sharded"}
    for rank in range(6):
        assert total(events, "send", rank) == sim.rank_bytes[rank]
        ends = [e["ts"] + e["dur"] for e in events if e["pid"] == rank]
        assert max(ends) <= sim.rank_seconds[rank] * 1e6 + 0.002


def test_arrows_point_forward_in_time():
    events = run().trace["traceEvents"]
    starts = {e["id"]: e["ts"] for e in events if e["ph"] == "s"}
    ends = {e["id"]: e["ts"] for e in events if e["ph"] == "f"}
    assert starts.keys() == ends.keys()
    assert all(ends[flow] >= starts[flow] for flow in starts)


def test_a_program_may_write_its_own_trace(tmp_path):
    path = tmp_path / "own.json"

    def work(comm):
        comm.trace(path)
        comm.allreduce(np.ones(10, np.float32), algorithm="ring")

    sparcml.simulate(work, 3)
    assert len({e["pid"] for e in check(path, 3)}) == 3


def test_the_trace_keeps_as_much_as_it_may():
    def work(comm):
        comm.allreduce(np.ones(10, np.float32), algorithm="ring")

    few = sparcml.simulate(work, 4, trace=10)
    assert sum(e["ph"] == "X" for e in few.trace["traceEvents"]) == 10
    assert few.trace["otherData"]["events left out"] > 0
    assert sparcml.simulate(work, 4, trace=0).trace["traceEvents"] == []


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
def test_impossible_delays_are_refused(bad):
    with pytest.raises(ValueError, match="must be finite and >= 0"):
        Gaussian(bad)
    with pytest.raises(ValueError, match="must be finite and >= 0"):
        ExponentialDelay(bad)
