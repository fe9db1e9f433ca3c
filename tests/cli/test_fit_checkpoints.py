"""Tests of the checkpoints of `sparcml fit`, on any number of ranks."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparcml
from sparcml.errors import DataError
from sparcml.linear import write_svmlight
from sparcml.linear.training.checkpoint import reshard_scd, reshard_sgd
from sparcml.linear.training.loop import train
from sparcml.linear.training.observer import TrainingObserver

from ..linear.problems import problem
from .fitting import config, trained


@pytest.fixture
def text(tmp_path) -> Path:
    """120 rows of 300 features."""
    write_svmlight(tmp_path / "train.svm", problem(dtype=np.float32))
    return tmp_path / "train.svm"


RESUMED: dict[str, dict[str, Any]] = {
    "sgd": {},
    "l1, held out": {"l1": 0.003, "validation_fraction": 0.2, "schedule": "inverse"},
    "momentum, l2": {
        "momentum": 0.9,
        "l2": 0.01,
        "warmup_epochs": 1.0,
        "schedule": "exponential",
    },
    "topk, 4 bits": {"compress": "topk:0.05,qsgd:4"},
    "dense": {"communication": "dense"},
    "scd": {"solver": "scd", "learning_rate": None, "validation_fraction": 0.2, "l2": 0.01},
}


@pytest.mark.parametrize("how", RESUMED)
@pytest.mark.parametrize("ranks", [1, 3])
def test_resumed_run_ends_with_the_same_bits(text, tmp_path, how, ranks):
    wanted = config(text, **RESUMED[how])
    whole, results = trained(wanted, ranks)
    place = tmp_path / "kept"
    trained(replace(wanted, epochs=2, checkpoint=place), ranks)
    assert [p.name for p in place.iterdir()] == ["epoch-00002"]
    wanted.out.unlink()
    on = replace(wanted, checkpoint=place, resume=True)
    again, resumed = trained(on, ranks)
    assert again == whole
    assert len(resumed[0].history.epochs) == 3
    for then, now in zip(results[0].history.epochs, resumed[0].history.epochs, strict=True):
        assert then.loss == now.loss
    assert trained(on, ranks)[0] == whole  # nothing is left to do


@pytest.mark.parametrize("how", RESUMED)
@pytest.mark.parametrize(("before", "after"), [(3, 2), (1, 3), (2, 5)])
def test_resume_on_another_number_of_ranks(text, tmp_path, how, before, after):
    wanted = config(text, **RESUMED[how])
    place = tmp_path / "kept"
    _, whole = trained(replace(wanted, epochs=2, checkpoint=place), before)
    _, resumed = trained(replace(wanted, checkpoint=place, resume=True), after)
    first = [each.loss for each in whole[0].history.epochs]
    losses = [each.loss for each in resumed[0].history.epochs]
    assert losses[:2] == first
    if how in ("topk, 4 bits", "scd"):  # steps depend on the number of ranks
        assert losses[2] < losses[1]
        return
    _, (alone,) = trained(wanted, 1)
    np.testing.assert_allclose(resumed[0].model.weights, alone.model.weights, atol=1e-5)
    assert losses[2] == pytest.approx(alone.history.epochs[2].loss, rel=1e-4)


@pytest.mark.parametrize(("before", "after"), [(3, 2), (1, 3), (2, 5), (5, 2)])
def test_reshard_sgd_keeps_sums(before, after):
    rng = np.random.default_rng(0)
    parts = [
        {
            "0/pending": np.array([rng.random()]),
            "0/method/step": np.array(7),
            "0/method/residual": rng.normal(size=20),
            "0/method/momentum": rng.normal(size=20),
        }
        for _ in range(before)
    ]
    found = [reshard_sgd(parts, rank, after) for rank in range(after)]
    for name in ("0/method/residual", "0/pending"):
        sums = [np.sum([part[name] for part in each], axis=0) for each in (parts, found)]
        np.testing.assert_allclose(sums[0][-1], sums[1][-1], rtol=1e-12)
    assert {int(part["0/method/step"]) for part in found} == {7}
    mean = np.mean([p["0/method/momentum"] for p in parts[0::after]], axis=0)
    np.testing.assert_allclose(found[0]["0/method/momentum"], mean)


def test_reshard_scd():
    whole = np.arange(17.0)
    parts = [
        {"0/coordinates": whole[k::3], "0/trust_radius": -whole[k::3]} for k in range(3)
    ]
    for rank in range(5):
        found = reshard_scd(parts, rank, 5)
        np.testing.assert_array_equal(found["0/coordinates"], whole[rank::5])
        np.testing.assert_array_equal(found["0/trust_radius"], -whole[rank::5])


class Halted(TrainingObserver):
    """An observer that interrupts the run at the third report."""

    left = 3

    def on_progress(self, progress):
        del progress
        self.left -= 1
        if not self.left:
            raise InterruptedError


WITHIN: dict[str, dict[str, Any]] = {
    "sgd": {},
    "l1": {"l1": 0.003},
    "momentum, l2": {"momentum": 0.9, "l2": 0.01, "schedule": "inverse"},
    "topk": {"compress": "topk:0.05"},
}


@pytest.mark.parametrize("how", WITHIN)
@pytest.mark.parametrize(("before", "after"), [(1, 1), (3, 3), (3, 2)])
def test_resume_within_an_epoch(text, tmp_path, how, before, after):
    wanted = config(text, algorithm="ssar_ring", **WITHIN[how])
    whole, (alone, *_) = trained(wanted, after)
    place = tmp_path / "kept"
    kept = replace(wanted, checkpoint=place, checkpoint_every=1e-9)
    with pytest.raises(InterruptedError):
        sparcml.launch(lambda comm: train(comm, kept, Halted()), before)
    assert [p.name for p in place.iterdir()] == ["epoch-00000-000000002"]
    again, (found, *_) = trained(replace(kept, resume=True), after)
    assert [p.name for p in place.iterdir()] == ["epoch-00003"]
    if before == after:
        assert again == whole
        dense = [each.history.epochs[0].dense_bytes for each in (found, alone)]
        assert dense[0] == pytest.approx(dense[1])
    elif how == "topk":
        losses = [each.loss for each in found.history.epochs]
        assert losses == sorted(losses, reverse=True)
    else:
        np.testing.assert_allclose(found.model.weights, alone.model.weights, atol=1e-5)


def test_converged_scd_stays_converged(text, tmp_path):
    wanted = config(text, solver="scd", learning_rate=None, l2=0.1, epochs=None, tol=1e-3)
    whole, (found,) = trained(replace(wanted, checkpoint=tmp_path / "kept"), 1)
    assert found.stop_reason == "converged"
    on = replace(wanted, checkpoint=tmp_path / "kept", resume=True)
    assert trained(on, 1)[0] == whole


def test_early_stopping(text):
    wanted = config(
        text,
        validation_fraction=0.5,
        epochs=50,
        learning_rate=30.0,
        batch_size=1,
        patience=2,
    )
    _, found = trained(wanted, 2)
    history = found[0].history.epochs
    best = int(np.argmin([each.validation_loss for each in history]))
    assert len(history) < 50
    assert len(history) >= best + 2
    assert "for 2 epochs" in found[1].stop_reason
    assert best + 1 < len(history)
    model = found[1].model
    assert model.metadata["best_epochs"] == [best + 1]
    _, (other, _) = trained(replace(wanted, epochs=best + 1, validation_fraction=0.5), 2)
    np.testing.assert_array_equal(model.weights, other.model.weights)
    np.testing.assert_array_equal(model.intercepts, other.model.intercepts)


def test_resume_requires_the_same_options_and_data(text, tmp_path):
    place = tmp_path / "kept"
    wanted = config(text, checkpoint=place, epochs=1)
    trained(wanted, 2)
    with pytest.raises(DataError, match="a checkpoint exists already; add --resume"):
        trained(wanted, 2)
    on = replace(wanted, resume=True, epochs=2)
    with pytest.raises(
        DataError, match="batch-size must be 16, as in the checkpoint, got 8"
    ):
        trained(replace(on, batch_size=8), 2)
    write_svmlight(text, problem(count=60, dtype=np.float32))
    with pytest.raises(DataError, match="rows must be 120, as in the checkpoint, got 60"):
        trained(on, 2)


KILLED = """
import os, signal, sys
from sparcml.cli import main
fsync, left = os.fsync, [5]  # two files and a folder of the first, two files of the second
def fatal(handle):
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    fsync(handle)
os.fsync = fatal
main()
"""


def test_killed_while_writing_a_checkpoint(text, tmp_path):
    place = tmp_path / "kept"
    common = [
        "--out",
        "m",
        "--learning-rate",
        "0.5",
        "--epochs",
        "3",
        "--checkpoint",
        "kept",
    ]
    common += ["--features", "300"]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, "fit", "train.svm", *common],
        cwd=tmp_path,
        capture_output=True,
    )
    assert done.returncode == -9
    assert not (tmp_path / "m").exists()
    assert {p.name for p in place.iterdir()} == {"epoch-00001", ".unfinished-epoch-00002"}
    wanted = config(text, batch_size=32, seed=0)
    again, _ = trained(replace(wanted, checkpoint=place, resume=True), 1)
    assert again == trained(wanted, 1)[0]
    assert [p.name for p in place.iterdir()] == ["epoch-00003"]
