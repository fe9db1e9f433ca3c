"""Models of all nodes at once are those of the library; saved rows give page and verdicts."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import run_decentralized
from decentralized import compressed, different_data, problem, residual, rows, vectorized
from rich.console import Console
from workloads import data

from sparcml import decentralized as dec

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks/results"
needs_data = pytest.mark.skipif(not data.place().is_dir(), reason="no data")
needs_rows = pytest.mark.skipif(
    not list(RESULTS.glob("*-decentralized.json")), reason="no results"
)


@pytest.mark.parametrize("widths", [(3, 4), (5, 6, 4), (4, 3, 5, 2)])
def test_gradients_are_differences_of_losses(widths):
    rng = np.random.default_rng(0)
    network = problem.Network(widths, decay=0.1)
    models = (0.5 * rng.standard_normal((2, network.size))).astype(np.float32)
    inputs = rng.standard_normal((2, 7, widths[0])).astype(np.float32)
    labels = rng.integers(widths[-1], size=(2, 7))
    found = network.gradients(models, inputs, labels)
    for node in range(2):
        for index in range(network.size):
            moved = [models[node].copy() for _ in range(2)]
            moved[0][index] += 1e-3
            moved[1][index] -= 1e-3
            high, low = (network.loss(x, inputs[node], labels[node]) for x in moved)
            assert found[node, index] == pytest.approx((high - low) / 2e-3, abs=2e-4)


@pytest.mark.parametrize("name", ["ring", "torus", "star", "complete", "exponential"])
def test_mixing_is_the_matrix_of_the_topology(name):
    topology = dec.by_name(name, 12)
    X = np.random.default_rng(0).standard_normal((12, 5)).astype(np.float32)
    assert vectorized.Mixer(topology)(X) == pytest.approx(topology.matrix() @ X, abs=1e-6)


@needs_data
@pytest.mark.parametrize("method", ["D-PSGD", *compressed.METHODS])
def test_models_are_those_of_the_library(method, monkeypatch):
    monkeypatch.setattr(compressed, "CHECKED", 8)
    monkeypatch.setattr(compressed, "CHECKED_STEPS", 6)
    ((row),) = compressed.check(method, 0 if method == "D-PSGD" else 4)
    is_same_order = method not in ("naive", "Choco")
    assert row["apart"] <= (0 if is_same_order else 1e-6)


@needs_data
def test_sorted_nodes_have_few_classes():
    parts = problem.shards(16, 64, sorted_by_label=True)
    assert max(len(set(each.tolist())) for each in parts.labels) <= 3
    mixed = problem.shards(16, 64)
    assert min(len(set(each.tolist())) for each in mixed.labels) >= 8


def test_models_of_many_residual_networks_have_the_gradients_of_single_ones():
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    models = residual.start() + 0.1 * rng.standard_normal((3, 269_434)).astype(np.float32)
    images = rng.standard_normal((3, 2, 7, 7)).astype(np.float32)
    labels = rng.integers(10, size=(3, 2))
    found = residual.gradients(models, images, labels)
    for node in range(3):
        part = slice(node, node + 1)
        single = residual.gradients(models[part], images[part], labels[part])[0]
        np.testing.assert_allclose(found[node], single, atol=1e-5 * abs(single).max())
        moved = 1e-3 * single / np.linalg.norm(single)
        high, low = (
            residual.loss(x, images[node], labels[node])
            for x in (models[node] + moved, models[node] - moved)
        )
        assert (high - low) / 2e-3 == pytest.approx(np.linalg.norm(single), rel=0.02)


def test_binary_tree_is_one():
    dec.RelaySum(different_data.binary_tree(16))  # which refuses other graphs


def test_an_interrupted_run_continues(tmp_path, monkeypatch):
    calls = []

    def measure(case):
        calls.append(case)
        if case == 2 and calls.count(2) == 1:
            raise KeyboardInterrupt
        return [{"part": "one", "value": case}]

    monkeypatch.setattr(run_decentralized, "CASES", [("one", (n,)) for n in range(4)])
    monkeypatch.setattr(run_decentralized, "MEASURES", {"one": measure})
    again = lambda: run_decentralized.measured(  # noqa: E731
        {"one"}, tmp_path, tmp_path / "rows.json", Console(quiet=True)
    )
    with pytest.raises(KeyboardInterrupt):
        again()
    found = again()
    assert calls == [0, 1, 2, 2, 3]
    assert [row["value"] for each in found.values() for row in each] == [0, 1, 2, 3]


def test_other_parts_are_kept(tmp_path, monkeypatch):
    cases = [("one", (1,)), ("two", (2,))]
    monkeypatch.setattr(run_decentralized, "CASES", cases)
    saved = [{"case": f"{part} {case}", "part": part} for part, case in cases]
    file = tmp_path / "2026-01-01-decentralized.json"
    file.write_text(json.dumps({"environment": {}, "rows": saved}))
    assert run_decentralized.saved({"one"}, tmp_path) == {"two (2,)": [saved[1]]}


def test_unknown_parts_are_refused():
    with pytest.raises(SystemExit, match="no part 'speed'; there are map"):
        run_decentralized.chosen(["speed"])


def test_steps_to_a_loss_are_interpolated():
    row = {"part": "convergence", "method": "x", "lr": 1.0, "steps": 20}
    row |= {"marks": [10, 20], "mean": [3.0, 1.0]}
    assert rows.steps_to([row], "x", (1.0, 20), 3.5) == 10
    assert rows.steps_to([row], "x", (1.0, 20), 2.0) == 15
    assert rows.steps_to([row], "x", (1.0, 20), 0.5) == float("inf")


@needs_rows
def test_page_is_up_to_date():
    pytest.importorskip("matplotlib")
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks/decentralized_page.py"), "--check"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@needs_rows
def test_declared_times_are_the_simulated_ones():
    for row in rows.load("times"):
        if row["method"] == "Rabenseifner":  # ranks agree on the call in 7 rounds of 5 ms
            assert row["declared"] + 0.035 == pytest.approx(row["seconds"], rel=0.01)
        elif row["declared"] is not None:
            assert row["seconds"] == pytest.approx(row["declared"], rel=0.05), row


@needs_rows
def test_a_slow_node_does_not_slow_the_others_of_ad_psgd():
    slow, equal = (
        rows.one(rows.load("slow node"), "slow node", method="AD-PSGD", slow=flag)
        for flag in (True, False)
    )
    assert slow["fast_min"] >= 0.9 * equal["fast_mean"]
