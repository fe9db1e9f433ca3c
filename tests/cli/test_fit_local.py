"""Tests of `sparcml fit --local-steps`: models, checkpoints, processes and error messages."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparcml
from sparcml.errors import DataError
from sparcml.linear import SGD, Constant, write_svmlight
from sparcml.linear.solvers.sgd_state import INTERCEPT
from sparcml.linear.training.checkpoint import Checkpoint, reshard_local
from sparcml.linear.training.loop import train
from sparcml.linear.training.model import Model

from ..linear.problems import problem
from .fitting import config, trained
from .inside import called
from .ranks import needs_mpi4py, needs_mpiexec
from .test_fit_checkpoints import Halted

OPTIONS: dict[str, dict[str, Any]] = {
    "lossless": {"algorithm": "ssar_ring"},
    "l2, validation": {"l2": 0.01, "validation_fraction": 0.2, "algorithm": "ssar_ring"},
    "topk": {"compress": "topk:0.05", "algorithm": "ssar_ring", "intercept": False},
}


@pytest.fixture
def text(tmp_path) -> Path:
    """120 rows of 300 features."""
    write_svmlight(tmp_path / "train.svm", problem(dtype=np.float32))
    return tmp_path / "train.svm"


def test_model_is_that_of_the_solver(text):
    options = config(text, local_steps=3)
    _, results = trained(options, 4)
    sgd = SGD(learning_rate=Constant(0.5), batch_size=16, epochs=3, seed=3, local_steps=3)
    rows = problem(dtype=np.float32)
    states = sparcml.launch(lambda c: sgd.run(c, rows.part(c.rank, c.size)), 4)
    loaded = Model.load(options.out)
    np.testing.assert_array_equal(loaded.weights[0], states[0].weights)
    assert loaded.intercepts[0] == states[0].intercept
    assert "local_steps=3" in loaded.metadata["solver"]
    records = results[0].history.epochs
    assert all(0 < record.bytes < (record.dense_bytes or 0) for record in records)
    assert records[2].loss < records[0].loss


@pytest.mark.parametrize("how", OPTIONS)
def test_resumed_run_ends_with_the_same_bits(text, tmp_path, how):
    """After an epoch, and within a round, where each rank has weights of its own."""
    options = config(text, local_steps=4, **OPTIONS[how])
    expected, _ = trained(options)
    after_epoch = replace(options, checkpoint=tmp_path / "a")
    trained(replace(after_epoch, epochs=2))
    assert trained(replace(after_epoch, resume=True))[0] == expected
    within = replace(options, checkpoint=tmp_path / "b", checkpoint_every=1e-9)
    with pytest.raises(InterruptedError):
        sparcml.launch(lambda comm: train(comm, within, Halted()), 3)
    assert [p.name for p in (tmp_path / "b").iterdir()] == ["epoch-00000-000000002"]
    with pytest.raises(DataError, match="local-steps must be 4, as in the checkpoint"):
        trained(replace(within, resume=True, local_steps=2))
    assert trained(replace(within, resume=True))[0] == expected


@pytest.mark.parametrize("how", OPTIONS)
@pytest.mark.parametrize("after", [2, 4])
def test_resume_within_a_round_on_another_number_of_ranks(text, tmp_path, how, after):
    """All new ranks start with the mean of the weights; residuals keep their sum."""
    options = config(text, local_steps=4, **OPTIONS[how])
    options = replace(options, checkpoint=tmp_path / "c", checkpoint_every=1e-9)
    with pytest.raises(InterruptedError):
        sparcml.launch(lambda comm: train(comm, options, Halted()), 3)
    folder = Checkpoint(tmp_path / "c").newest()
    assert folder is not None
    parts = [dict(np.load(folder / f"rank-{rank}.npz")) for rank in range(3)]
    assert not np.array_equal(parts[0]["0/weights"], parts[1]["0/weights"])
    new = [reshard_local(parts, rank, after) for rank in range(after)]
    for part in new:
        mean = np.mean([old["0/weights"] for old in parts], axis=0)
        np.testing.assert_array_equal(part["0/weights"], mean)
        intercepts = [old["0/numbers"][INTERCEPT] for old in parts]
        assert part["0/numbers"][INTERCEPT] == np.mean(intercepts)
    for name in parts[0].keys() & {"0/pending", "0/method/residual"}:
        sums = [sum(part[name] for part in each) for each in (parts, new)]
        np.testing.assert_allclose(sums[0], sums[1], atol=1e-6)
    _, results = trained(replace(options, resume=True), after)
    losses = [record.loss for record in results[0].history.epochs]
    assert losses == sorted(losses, reverse=True)
    assert len(losses) == 3


REFUSED = {
    "zero": (("--local-steps", "0", "-n", "2"), "--local-steps must be >= 1, got 0"),
    "one rank": (("--local-steps", "4"), "--local-steps needs several ranks; add -n"),
    "scd": (
        ("--local-steps", "4", "--solver", "scd", "-n", "2"),
        "--local-steps must be left out with --solver scd; it is an option of --solver sgd",
    ),
    "l1": (
        ("--local-steps", "4", "--l1", "1", "-n", "2"),
        "--l1 must be left out with --local-steps; use --l2",
    ),
    "momentum": (
        ("--local-steps", "4", "--momentum", "0.9", "-n", "2"),
        "--momentum must be left out with --local-steps",
    ),
    "topology": (
        ("--local-steps", "4", "--topology", "ring", "-n", "2"),
        "--topology must be left out with --local-steps; use one of them",
    ),
    "votes": (
        ("--local-steps", "4", "--compress", "majority_vote", "-n", "2"),
        "--compress must return a mean with --local-steps, got majority_vote",
    ),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_invalid_options(text, mistake, monkeypatch, capfd):
    options, message = REFUSED[mistake]
    monkeypatch.chdir(text.parent)
    code, out, err = called(monkeypatch, capfd, "fit", "train.svm", "--out", "m", *options)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert message in err


@needs_mpiexec
@needs_mpi4py
@pytest.mark.mpi
def test_on_processes(text):
    """The model is that of threads."""
    command = ["fit", "train.svm", "-n", "2", "--local-steps", "3", "--out", "a"]
    options = ["--epochs", "2", "--learning-rate", "0.5", "--features", "300"]
    done = subprocess.run(
        [sys.executable, "-m", "sparcml", *command, *options],
        cwd=text.parent,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "local_steps=3" in done.stdout
    same = config(text, batch_size=32, epochs=2, seed=0, local_steps=3)
    assert (text.parent / "a").read_bytes() == trained(same, 2)[0]
