"""`sparcml plan --topology`: rows of decentralized methods, and which is faster."""

import json

import pytest
from typer.testing import CliRunner

import sparcml
from sparcml import decentralized as dec
from sparcml.cli.app import app
from sparcml.decentralized.planning import exchange_terms, plan_neighbors
from sparcml.network import Network
from sparcml.planning.models import of_size
from sparcml.planning.plan import plan as make_plan

BARE = Network(50e-6, 0.0, 0.8e-9, 0.0, 0.0, 0.0)  # a = 50 us, b = 0.8 ns per byte
USUAL = ("--params", "270k", "--ranks", "112", "--step-time", "1ms")


def plan(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["plan", *arguments], env={"COLUMNS": "80"})
    assert done.exit_code == 0, done.output
    return done.output


def test_the_faster_one_is_reported_with_its_factor():
    slow = json.loads(
        plan(*USUAL, "--network", "100mbit,5ms", "--topology", "ring", "--json")
    )
    found = slow["decentralized"]
    row, dense = (
        found["rows"][0],
        min(r["step"] for r in slow["rows"] if r["method"] == "dense"),
    )
    assert row["speedup"] == pytest.approx(dense / row["step"])
    assert row["speedup"] > 1.2
    assert found["verdict"].startswith(f"D-PSGD is {row['speedup']:.2f}x as fast")
    assert found["steps_to_consensus"] == dec.ring(112).steps_to_consensus()
    fast = plan(
        "--model", "resnet50", "-n", "8", "--network", "10gbit", "--topology", "ring"
    )
    assert "Allreduce is 1." in fast


def test_table_fits_80_columns_and_ends_with_the_fastest_method():
    text = plan(*USUAL, "--network", "100mbit,5ms", "--topology", "ring")
    table = text.split("With the neighbours of ring(112):")[1].split("D-PSGD is ")[0]
    assert all(len(line) <= 80 for line in table.splitlines())
    names = {"dec": dec, "sparcml": sparcml}
    assert isinstance(eval(text.strip().splitlines()[-1], names), dec.Method)


def test_without_the_option_nothing_changes():
    assert "neighbours" not in plan(*USUAL)
    assert "decentralized" not in json.loads(plan(*USUAL, "--json"))


def test_compressed_methods_need_a_symmetric_static_graph():
    text = plan(*USUAL, "--topology", "one_peer_exponential")
    assert "DCD and Choco need a symmetric graph" in text
    assert "DCD, 4 bits" not in text


@pytest.mark.parametrize(("ranks", "nbytes"), [(8, 3e6), (64, 248e6), (112, 770e6)])
def test_ring_loses_to_the_ring_allreduce_above_the_known_size(ranks, nbytes):
    """D-PSGD wins if N < P (P - 2) a / b bytes; its messages share a port here."""
    a, b = BARE.latency, BARE.seconds_per_byte
    assert ranks * (ranks - 2) * a / b == pytest.approx(nbytes, rel=1e-3)
    # Both neighbours' messages are in flight together, and cost one latency, not two: the
    # border is at (2 P - 3) / (2 P - 4) of the formula with 2 a.
    border = ranks * (2 * (ranks - 1) - 1) * a / (2 * b)
    for factor, faster in ((0.9, True), (1.1, False)):
        size = int(factor * border / 4)
        mine = exchange_terms(dec.ring(ranks), size, BARE).seconds(BARE)
        n = 4 * size
        allreduce = 2 * (ranks - 1) * a + 2 * (ranks - 1) / ranks * n * b
        assert (mine < allreduce) is faster


@pytest.mark.parametrize(
    "name", ["ring", "torus:4x4", "exponential", "one_peer_exponential"]
)
def test_declared_time_is_the_simulated_one(name):
    import numpy as np

    topology, size = dec.by_name(name, 16), 10_000
    network = sparcml.network.network("100mbit,1ms")

    def body(comm):
        x = np.ones(size, np.float32)
        comm.neighbor_allreduce(x, topology)
        start = comm.now()
        for step in range(topology.period):
            comm.neighbor_allreduce(x, topology, step)
        return (comm.now() - start) / topology.period

    found = max(sparcml.simulate(body, 16, network).results)
    declared = exchange_terms(topology, size, network).seconds(network)
    assert found == pytest.approx(declared, rel=0.02)


def test_busiest_rank_counts():
    """The hub of a star sends to all others."""
    hub = exchange_terms(dec.star(16), 1000, BARE)
    assert hub.nbytes == pytest.approx(15 * 4032)


def test_overlap_is_that_of_the_exchange_which_needs_no_gradient():
    methods = (sparcml.Dense(),)
    result = make_plan(of_size("1M"), 16, BARE, 10.0, methods=methods, overlap=1.0)
    dense, *others = plan_neighbors(result, dec.ring(16))
    assert dense.exposed == 0
    assert all(row.exposed == row.communication for row in others)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--topology", "rope"], "one of ring"), (["--topology", "torus:3x3"], "product 112")],
)
def test_mistakes_are_one_line(arguments, words, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["sparcml", "plan", *USUAL, *arguments])
    with pytest.raises(SystemExit) as caught:
        sparcml.cli.main()
    assert caught.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
