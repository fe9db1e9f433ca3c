"""`benchmarks/run_compression.py`: rows, floors, checks that really check, and its vectors."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import run_compression
import run_momentum
from compressors import gradients, ours, peers, steps
from compressors.case import Case, Floor, Outcome, judge_floors, measure, quality
from harness.command import main
from harness.stopwatch import Stopwatch

import sparcml

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "run_compression.py"


def vector(size=1 << 12):
    return gradients.gaussian(size, 1)


def test_every_way_is_timed_and_right(tmp_path):
    file = tmp_path / "compress.json"
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--quick", "--size", "16K", "--json", str(file)],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"SPARCML_DATA": str(tmp_path)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the network trains on random images" in done.stdout
    rows = json.loads(file.read_text())["rows"]
    assert {row["vector"] for row in rows} == {"gaussian", "gradient of random images"}
    assert all(row["wrong"] == 0 for row in rows)
    assert all(row["ns"] > 0 and row["copies"] > 0 for row in rows)
    names = {row["method"] for row in rows}
    for kind in ("TopK", "RandomK", "Threshold", "BlockTopK", "QSGD", "NUQSGD", "TernGrad"):
        assert any(name.startswith(kind) for name in names)
    for kind in ("OneBit", "Sign", "Natural", "Half", "Dense", "Compressed", "DGC"):
        assert any(name.startswith(kind) for name in names)
    assert {"np.argpartition 1 %", "scipy.sparse 1 %"} <= names
    found = {(r["method"], r["part"]): r for r in rows if r["vector"] == "gaussian"}
    assert found["QSGD(8)", "encode"]["floor"] == "<= 2.5x memcpy"
    assert {row["met"] for row in rows} == {None}  # the floors are for 16M values
    assert "missed" not in done.stdout
    for word in ("ns/value", "memcpy", "bit/value", "error", "bias", "#wrong"):
        assert word in done.stdout


def test_what_unbiased_codes_lose_is_noise_and_what_selections_lose_is_bias():
    x = vector(1 << 14).values
    way = next(w for w in ours._codes(x) if w.name == "QSGD(4)")
    noisy = quality(x, way.outcome().decoded)
    assert abs(noisy["bias"]) < 0.01 < noisy["error"]
    stream = sparcml.TopK(0.1).select(x)
    lost = quality(x, stream.to_dense())
    assert lost["bias"] == pytest.approx(-(lost["error"] ** 2), rel=1e-5)


def test_a_wrong_selection_is_noticed():
    x = vector().values
    top = sparcml.TopK(k=10)
    right = top.select(x)
    assert ours.broken(top, x, right) == 0
    fewer = sparcml.Stream(x.size, right.indices[1:], right.values[1:])
    assert ours.broken(top, x, fewer) >= 1
    smallest = np.sort(np.argsort(np.abs(x))[:10]).astype(np.uint32)
    assert ours.broken(top, x, sparcml.Stream(x.size, smallest, x[smallest])) > 1
    other = sparcml.Stream(x.size, right.indices, right.values * 2)
    assert ours.broken(top, x, other) == 10


def test_a_wrong_row_fails_the_command(monkeypatch, capsys):
    def cases(x):
        yield Case("bad", "select", lambda: None, lambda: Outcome(x, x.nbytes, wrong=1))

    monkeypatch.setattr(ours, "cases", cases)
    for source in (steps, peers):
        monkeypatch.setattr(source, "cases", lambda x: iter(()))
    command = (run_compression.measure_all, run_compression.verdict)
    arguments = ("--size", "4K", "--quick")
    assert main("compression", *command, min_size="4K", arguments=arguments) == 1
    assert "# FAILED: wrong results in 2 of 2 rows" in capsys.readouterr().out


def test_floors_are_against_memcpy_and_other_lines():
    x = vector()
    ways = [
        Case(
            "fast",
            "select",
            lambda: None,
            lambda: Outcome(None, 1),
            Floor(99.0, "slow select", 2),
        ),
        Case("slow", "select", lambda: sum(range(9999)), lambda: Outcome(None, 1)),
        Case(
            "never",
            "select",
            lambda: sum(range(9999)),
            lambda: Outcome(None, 1),
            Floor(0.0),
        ),
    ]
    rows = [measure(way, x, Stopwatch(0.0, 3)) for way in ways]
    judge_floors(rows, {(w.name, w.part): w.floor for w in ways})
    assert [row["met"] for row in rows] == ["yes", None, "no"]
    assert rows[0]["floor"] == "<= 99.0x memcpy, >= 2x slow select"


def test_names_are_as_one_writes_them():
    names = [ours.label(sparcml.TopK(0.01))]
    names.append(ours.label(sparcml.TopK(k=4, bucket=512)))
    names.append(ours.label(sparcml.Compressed(sparcml.TopK(0.1))))
    assert names == ["TopK(0.01)", "TopK(k=4, bucket=512)", "Compressed(TopK(0.1))"]


def test_the_gradient_is_that_of_its_loss(monkeypatch, tmp_path):
    monkeypatch.setenv("SPARCML_DATA", str(tmp_path))
    found = gradients.gradient(5000, 1)
    assert found.name == "gradient of random images"
    assert found.values.shape == (5000,)
    rng = np.random.default_rng(0)
    weights = [w.astype(np.float64) for w in gradients._weights(4, rng)]
    x, labels = rng.random((8, gradients.PIXELS)), rng.integers(0, 10, 8)

    def loss(weights):
        layer = x
        for w in weights[:-1]:
            layer = np.maximum(layer @ w, 0)
        scores = layer @ weights[-1]
        top = scores.max(axis=1)
        logs = np.log(np.exp(scores - top[:, None]).sum(axis=1)) + top
        return np.mean(logs - scores[np.arange(8), labels])

    slopes = gradients._slopes(weights, x, labels)
    for i, slope in enumerate(slopes):
        place = np.unravel_index(np.abs(slope).argmax(), slope.shape)
        pushed = [v.copy() for v in weights]
        pushed[i][place] += 1e-6
        rise = (loss(pushed) - loss(weights)) / 1e-6
        assert rise == pytest.approx(slope[place], rel=1e-3)


def test_momentum_is_timed_beside_the_plain_step(capsys):
    rows = run_momentum.measure_all(1 << 12, Stopwatch(0.0, 2))
    families = [row["family"] for row in rows]
    assert list(dict.fromkeys(families)) == list(run_momentum.FAMILIES)
    for family, methods in run_momentum.FAMILIES.items():
        mine = [row for row in rows if row["family"] == family]
        assert [row["method"] for row in mine] == [str(method) for method in methods]
        assert mine[0]["ratio"] == 1.0
        assert all(row["ratio"] == row["median"] / mine[0]["median"] > 0 for row in mine)
    slow = [row | {"ratio": 1.31} for row in rows[:1]]
    capsys.readouterr()
    assert run_momentum.verdict(slow) == 1
    assert "missed: 1.31x" in capsys.readouterr().out
    assert run_momentum.verdict(rows[:1]) == 0
