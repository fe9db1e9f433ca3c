"""Tests of `sparcml fit --topology`: models, checkpoints, processes and error messages."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparcml
from sparcml import decentralized as dec
from sparcml.decentralized.parse import COMPRESS, parse_method
from sparcml.errors import DataError
from sparcml.linear import SGD, Constant, write_svmlight
from sparcml.linear.training.checkpoint import OWN_MODEL, Checkpoint
from sparcml.linear.training.model import Model

from ..linear.problems import problem
from .fitting import config, trained
from .inside import called
from .ranks import needs_mpi4py, needs_mpiexec

OPTIONS: dict[str, dict[str, Any]] = {
    "dpsgd": {},
    "momentum": {"method": "dpsgd:0.5", "l2": 0.01, "validation_fraction": 0.2},
    "dcd": {"method": "dcd", "compress": "qsgd:8"},
    "choco": {"method": "choco:0.2", "compress": "topk:0.1", "intercept": False},
}


@pytest.fixture
def text(tmp_path) -> Path:
    """120 rows of 300 features."""
    write_svmlight(tmp_path / "train.svm", problem(dtype=np.float32))
    return tmp_path / "train.svm"


def test_specifications():
    ring = dec.ring(4)
    assert parse_method("dpsgd", ring) == dec.DPSGD(ring)
    assert parse_method("dpsgd:0.9", ring) == dec.DPSGD(ring, momentum=0.9)
    assert parse_method("choco", ring, seed=3) == dec.Choco(
        ring, sparcml.TopK(0.01), seed=3
    )
    assert parse_method("choco:0.3", ring, "sign") == dec.Choco(ring, sparcml.Sign(), 0.3)
    assert parse_method("dcd", ring, "qsgd:8") == dec.DCD(ring, sparcml.QSGD(bits=8))
    assert parse_method("moniqua:2", ring) == dec.Moniqua(ring, theta=2.0)
    for name in dec.METHODS.keys() - {"moniqua"}:
        method = parse_method(name, dec.star(4) if name == "relay_sum" else ring.lazy())
        assert method.name == name
        assert getattr(method, "compress", None) == COMPRESS.get(name)


def test_model_is_the_mean_of_the_solver(text):
    options = config(text, topology="ring", method="dcd", compress="qsgd:4")
    model, results = trained(options, 4)
    rows = problem(dtype=np.float32)
    sgd = SGD(
        learning_rate=Constant(0.5),
        batch_size=16,
        epochs=3,
        seed=3,
        method=dec.DCD(dec.ring(4), sparcml.QSGD(bits=4), seed=3),
    )
    states = sparcml.launch(lambda c: sgd.run(c, rows.part(c.rank, c.size)), 4)
    loaded = Model.load(options.out)
    np.testing.assert_array_equal(loaded.weights[0], states[0].weights)
    assert loaded.intercepts[0] == states[0].intercept
    assert model == options.out.read_bytes()
    records = results[0].history.epochs
    assert records[-1].consensus_distance == states[0].consensus_distance
    assert states[0].consensus_distance
    assert all(0 < record.bytes < (record.dense_bytes or 0) for record in records)


@pytest.mark.parametrize("how", OPTIONS)
def test_resumed_run_ends_with_the_same_bits(text, tmp_path, how):
    options = config(text, topology="ring", **OPTIONS[how])
    expected, _ = trained(options, 3)
    folder = tmp_path / "checkpoints"
    trained(replace(options, epochs=2, checkpoint=folder), 3)
    resumed, results = trained(replace(options, checkpoint=folder, resume=True), 3)
    assert resumed == expected
    assert len(results[0].history.epochs) == 3
    other = replace(options, checkpoint=folder, resume=True, method="d2", compress=None)
    with pytest.raises(
        DataError, match=r"(method|compress) must be .*, as in the checkpoint"
    ):
        trained(other, 3)


@pytest.mark.parametrize("how", OPTIONS)
@pytest.mark.parametrize(("before", "after"), [(4, 3), (2, 4)])
def test_resume_on_another_number_of_ranks_keeps_the_mean(
    text, tmp_path, how, before, after
):
    options = config(text, topology="ring", checkpoint=tmp_path / "c", **OPTIONS[how])
    trained(replace(options, epochs=2), before)
    folder = Checkpoint(tmp_path / "c").newest()
    assert folder is not None
    ranks = [np.load(folder / f"rank-{r}.npz") for r in range(before)]
    means = {name: np.mean([r[f"0/{name}"] for r in ranks], axis=0) for name in OWN_MODEL}
    _, results = trained(replace(options, epochs=2, resume=True), after)
    np.testing.assert_allclose(
        results[0].model.weights[0] if how != "momentum" else means["weights"],
        means["weights"],
        atol=1e-6,
    )
    _, results = trained(replace(options, resume=True), after)
    assert len(results[0].history.epochs) == 3
    assert results[0].history.epochs[2].loss < results[0].history.epochs[0].loss
    assert (tmp_path / "c" / "epoch-00003" / f"rank-{after - 1}.npz").exists()


REFUSED = {
    "name": (
        ("--topology", "rign", "-n", "2"),
        "fit: --topology must be one of ring, torus, ",
    ),
    "one rank": (
        ("--topology", "ring", "-n", "1"),
        "fit: --topology needs several ranks; add -n",
    ),
    "default ranks": (
        ("--topology", "ring"),
        "fit: --topology needs several ranks; add -n",
    ),
    "sides": (
        ("--topology", "torus:2x4", "-n", "4"),
        "sides with the product 4, such as torus:2x2",
    ),
    "matrix": (
        ("--topology", "w.npy", "-n", "4"),
        "'w.npy' must be for 4 ranks, got a matrix of 3",
    ),
    "no matrix": (("--topology", "x.npy", "-n", "4"), "'x.npy' is not a matrix"),
    "scd": (
        ("--topology", "ring", "--solver", "scd", "-n", "2"),
        "--topology must be left out with --solver scd; it is an option of --solver sgd",
    ),
    "method alone": (
        ("--method", "choco", "-n", "2"),
        "--method needs neighbours; add --topology",
    ),
    "method": (
        ("--topology", "ring", "--method", "admm", "-n", "4"),
        "fit: --method must be dpsgd:MOMENTUM, ",
    ),
    "option": (
        ("--topology", "ring", "--method", "d2:1", "-n", "4"),
        "method d2 has no option",
    ),
    "number": (
        ("--topology", "ring", "--method", "choco:x", "-n", "4"),
        "gamma of choco must be a number, got 'x'",
    ),
    "theta": (
        ("--topology", "ring", "--method", "moniqua", "-n", "4"),
        "moniqua needs theta, such as moniqua:2",
    ),
    "bipartite": (
        ("--topology", "ring", "--method", "adpsgd", "-n", "3"),
        "ADPSGD: topology must be bipartite",
    ),
    "tree": (
        ("--topology", "ring", "--method", "relay_sum", "-n", "4"),
        "RelaySum: topology must be a tree",
    ),
    "lambda_min": (
        ("--topology", "torus:2x4", "--method", "d2", "-n", "8"),
        "D2: topology must have",
    ),
    "static": (
        ("--topology", "one_peer_exponential", "--method", "choco", "-n", "4"),
        "Choco: topology must be",
    ),
    "biased": (
        ("--topology", "ring", "--method", "dcd", "--compress", "topk:0.1", "-n", "4"),
        "DCD: compress must be unbiased",
    ),
    "two compressors": (
        (
            "--topology",
            "ring",
            "--method",
            "choco",
            "--compress",
            "topk:0.1,qsgd:4",
            "-n",
            "4",
        ),
        "--compress must be one sparsifier or one quantizer",
    ),
    "compress models": (
        ("--topology", "ring", "--compress", "qsgd:4", "-n", "4"),
        "--compress must be left out with dpsgd, which sends models",
    ),
    "l1": (
        ("--topology", "ring", "--l1", "1", "-n", "2"),
        "--l1 must be left out with --topology",
    ),
    "momentum": (
        ("--topology", "ring", "--momentum", "0.9", "-n", "2"),
        "--momentum must be left out with --topology; use --method dpsgd:0.9",
    ),
    "dense": (
        ("--topology", "ring", "--communication", "dense", "-n", "2"),
        "--communication must be left out with --topology",
    ),
    "algorithm": (
        ("--topology", "ring", "--algorithm", "ring", "-n", "2"),
        "--algorithm must be left out with --topology",
    ),
    "in flight": (
        (
            "--topology",
            "ring",
            "--method",
            "adpsgd",
            "-n",
            "4",
            "--checkpoint",
            "c",
            "--checkpoint-every",
            "1",
        ),
        "--checkpoint-every must be left out with --method adpsgd",
    ),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_invalid_options(text, mistake, monkeypatch, capfd):
    options, message = REFUSED[mistake]
    monkeypatch.chdir(text.parent)
    np.save("w.npy", dec.ring(3).matrix())
    code, out, err = called(monkeypatch, capfd, "fit", "train.svm", "--out", "m", *options)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert message in err


@needs_mpiexec
@needs_mpi4py
@pytest.mark.mpi
def test_on_processes(text):
    """The model is that of threads, and an error under `sparcml run` is one line."""
    np.save(text.parent / "w.npy", dec.ring(3).matrix())
    fit = [
        "fit",
        "train.svm",
        "--epochs",
        "2",
        "--learning-rate",
        "0.5",
        "--features",
        "300",
    ]
    by_itself = [*fit, "-n", "2", "--topology", "ring", "--method", "choco", "--out", "a"]
    under_run = [
        "run",
        "-n",
        "2",
        "-m",
        "sparcml",
        *fit,
        "--topology",
        "w.npy",
        "--out",
        "b",
    ]
    done, failed = (
        subprocess.run(
            [sys.executable, "-m", "sparcml", *command],
            cwd=text.parent,
            capture_output=True,
            text=True,
            timeout=60,
        )
        for command in (by_itself, under_run)
    )
    assert (done.returncode, failed.returncode) == (0, 1), done.stderr + failed.stderr
    assert "the mean of all ranks' models; consensus distance" in done.stdout
    options = config(text, batch_size=32, epochs=2, seed=0, topology="ring", method="choco")
    expected, _ = trained(options, 2)
    assert (text.parent / "a").read_bytes() == expected
    assert "'w.npy' must be for 2 ranks, got a matrix of 3" in failed.stderr
    assert "Traceback" not in failed.stderr
