"""Tests of the checkpoints of `sparcml fit`, on any number of ranks."""

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparcml
from sparcml.errors import DataError
from sparcml.linear import SGD, write_svmlight
from sparcml.linear.training.checkpoint import reshard_scd, reshard_sgd
from sparcml.linear.training.config import TrainingConfig
from sparcml.linear.training.dataset import load_dataset
from sparcml.linear.training.loop import run_epochs, train
from sparcml.linear.training.observer import TrainingObserver
from sparcml.linear.training.run import TrainingRun

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
    options = config(text, **RESUMED[how])
    expected, results = trained(options, ranks)
    folder = tmp_path / "checkpoints"
    trained(replace(options, epochs=2, checkpoint=folder), ranks)
    assert [p.name for p in folder.iterdir()] == ["epoch-00002"]
    options.out.unlink()
    resuming = replace(options, checkpoint=folder, resume=True)
    resumed_model, resumed = trained(resuming, ranks)
    assert resumed_model == expected
    assert len(resumed[0].history.epochs) == 3
    for then, now in zip(results[0].history.epochs, resumed[0].history.epochs, strict=True):
        assert then.loss == now.loss
    assert trained(resuming, ranks)[0] == expected  # nothing is left to do


@pytest.mark.parametrize("how", ["sgd", "scd"])
def test_steps_do_not_depend_on_earlier_calls(text, how):
    """Choices of `auto` are discarded, since a resumed run does not have them."""
    options = config(text, **RESUMED[how])
    x = sparcml.Stream(100_000, np.arange(10, dtype=np.uint32), np.ones(10))

    def messages(comm):
        before = comm.stats.messages
        comm.allreduce(x)
        return comm.stats.messages - before

    def work(comm):
        first, second = messages(comm), messages(comm)
        train(comm, options, TrainingObserver())
        return first, second, messages(comm)

    for first, second, later in sparcml.launch(work, 3):
        assert second < first  # ranks agree on an algorithm, which then holds
        assert later == first


@pytest.mark.parametrize("how", ["sgd", "scd", "topk, 4 bits"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_checkpoints_without_an_observer(text, tmp_path, how, ranks):
    """They need the history, so that the run resumes as one with a progress display."""
    folder = tmp_path / "checkpoints"
    options = config(text, **RESUMED[how])
    expected, _ = trained(options, ranks)
    stopped = replace(options, epochs=2, checkpoint=folder)

    def work(comm):
        data = load_dataset(comm, stopped)
        solver = stopped.build_solver(1.0, comm.size)
        stops = solver.stops if isinstance(solver, SGD) else solver.converged
        run = TrainingRun(comm, data, solver, stops, config=stopped)
        run_epochs(run)
        return [p.name for p in folder.iterdir()]

    assert sparcml.launch(work, ranks)[0] == ["epoch-00002"]
    assert trained(replace(options, checkpoint=folder, resume=True), ranks)[0] == expected


@pytest.mark.parametrize("how", RESUMED)
@pytest.mark.parametrize(("before", "after"), [(3, 2), (1, 3), (2, 5)])
def test_resume_on_another_number_of_ranks(text, tmp_path, how, before, after):
    options = config(text, **RESUMED[how])
    folder = tmp_path / "checkpoints"
    _, expected = trained(replace(options, epochs=2, checkpoint=folder), before)
    _, resumed = trained(replace(options, checkpoint=folder, resume=True), after)
    first = [each.loss for each in expected[0].history.epochs]
    losses = [each.loss for each in resumed[0].history.epochs]
    assert losses[:2] == first
    if how in ("topk, 4 bits", "scd"):  # steps depend on the number of ranks
        assert losses[2] < losses[1]
        return
    _, (single,) = trained(options, 1)
    np.testing.assert_allclose(resumed[0].model.weights, single.model.weights, atol=1e-5)
    assert losses[2] == pytest.approx(single.history.epochs[2].loss, rel=1e-4)


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
    results = [reshard_sgd(parts, rank, after) for rank in range(after)]
    for name in ("0/method/residual", "0/pending"):
        sums = [np.sum([part[name] for part in each], axis=0) for each in (parts, results)]
        np.testing.assert_allclose(sums[0][-1], sums[1][-1], rtol=1e-12)
    assert {int(part["0/method/step"]) for part in results} == {7}
    mean = np.mean([p["0/method/momentum"] for p in parts[0::after]], axis=0)
    np.testing.assert_allclose(results[0]["0/method/momentum"], mean)


def test_reshard_scd():
    expected = np.arange(17.0)
    parts = [
        {"0/coordinates": expected[k::3], "0/trust_radius": -expected[k::3]}
        for k in range(3)
    ]
    for rank in range(5):
        results = reshard_scd(parts, rank, 5)
        np.testing.assert_array_equal(results["0/coordinates"], expected[rank::5])
        np.testing.assert_array_equal(results["0/trust_radius"], -expected[rank::5])


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
    options = config(text, algorithm="ssar_ring", **WITHIN[how])
    expected, (single, *_) = trained(options, after)
    folder = tmp_path / "checkpoints"
    checkpointed = replace(options, checkpoint=folder, checkpoint_every=1e-9)
    with pytest.raises(InterruptedError):
        sparcml.launch(lambda comm: train(comm, checkpointed, Halted()), before)
    assert [p.name for p in folder.iterdir()] == ["epoch-00000-000000002"]
    resumed_model, (results, *_) = trained(replace(checkpointed, resume=True), after)
    assert [p.name for p in folder.iterdir()] == ["epoch-00003"]
    if before == after:
        assert resumed_model == expected
        dense = [each.history.epochs[0].dense_bytes for each in (results, single)]
        assert dense[0] == pytest.approx(dense[1])
    elif how == "topk":
        losses = [each.loss for each in results.history.epochs]
        assert losses == sorted(losses, reverse=True)
    else:
        np.testing.assert_allclose(results.model.weights, single.model.weights, atol=1e-5)


def test_converged_scd_stays_converged(text, tmp_path):
    options = config(text, solver="scd", learning_rate=None, l2=0.1, epochs=None, tol=1e-3)
    expected, (results,) = trained(replace(options, checkpoint=tmp_path / "checkpoints"), 1)
    assert results.stop_reason == "converged"
    resuming = replace(options, checkpoint=tmp_path / "checkpoints", resume=True)
    assert trained(resuming, 1)[0] == expected


def test_early_stopping(text):
    options = config(
        text,
        validation_fraction=0.5,
        epochs=50,
        learning_rate=30.0,
        batch_size=1,
        patience=2,
    )
    _, results = trained(options, 2)
    history = results[0].history.epochs
    best = int(np.argmin([each.validation_loss for each in history]))
    assert len(history) < 50
    assert len(history) >= best + 2
    assert "for 2 epochs" in results[1].stop_reason
    assert best + 1 < len(history)
    model = results[1].model
    assert model.metadata["best_epochs"] == [best + 1]
    _, (other, _) = trained(replace(options, epochs=best + 1, validation_fraction=0.5), 2)
    np.testing.assert_array_equal(model.weights, other.model.weights)
    np.testing.assert_array_equal(model.intercepts, other.model.intercepts)


def test_resume_requires_the_same_options_and_data(text, tmp_path):
    folder = tmp_path / "checkpoints"
    options = config(text, checkpoint=folder, epochs=1)
    trained(options, 2)
    with pytest.raises(DataError, match="a checkpoint exists already; add --resume"):
        trained(options, 2)
    resuming = replace(options, resume=True, epochs=2)
    with pytest.raises(
        DataError, match="batch-size must be 16, as in the checkpoint, got 8"
    ):
        trained(replace(resuming, batch_size=8), 2)
    for changes, message in (
        ({"seed": 1}, "got 1; use --seed 3"),
        ({"l2": 0.5}, "got 0.5; use --l2 0.0"),
        ({"class_weight": "1:2"}, "must be left out, .* leave out --class-weight"),
        ({"intercept": False}, "add --intercept"),
        ({"validation_fraction": 0.1}, "use --validation-fraction 0.0"),
    ):
        with pytest.raises(DataError, match=message):
            trained(replace(resuming, **changes), 2)
    write_svmlight(text, problem(count=60, dtype=np.float32))
    with pytest.raises(DataError, match="rows must be 120, as in the checkpoint, got 60"):
        trained(resuming, 2)


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
    folder = tmp_path / "checkpoints"
    common = [
        "--out",
        "m",
        "--learning-rate",
        "0.5",
        "--epochs",
        "3",
        "--checkpoint",
        "checkpoints",
    ]
    common += ["--features", "300"]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, "fit", "train.svm", *common],
        cwd=tmp_path,
        capture_output=True,
    )
    assert done.returncode == -9
    assert not (tmp_path / "m").exists()
    assert {p.name for p in folder.iterdir()} == {"epoch-00001", ".unfinished-epoch-00002"}
    options = config(text, batch_size=32, seed=0)
    resumed_model, _ = trained(replace(options, checkpoint=folder, resume=True), 1)
    assert resumed_model == trained(options, 1)[0]
    assert [p.name for p in folder.iterdir()] == ["epoch-00003"]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("checkpoint-topk", {"compress": "topk:0.05,qsgd:4"}),
        ("checkpoint-scd", {"solver": "scd", "l2": 0.01}),
    ],
)
def test_version_0_1_resumes_on_another_number_of_ranks(tmp_path, name, options):
    files = Path(__file__).parents[1] / "golden" / "files"
    shutil.copytree(files / name, tmp_path / name)
    resuming = TrainingConfig(
        files=[files / "rows.svm"],
        out=tmp_path / "model",
        seed=1,
        epochs=3,
        checkpoint=tmp_path / name,
        resume=True,
        **options,
    )
    _, (result, *_) = trained(resuming, 3)
    losses = [record.loss for record in result.history.epochs]
    assert len(losses) == 3
    assert losses[2] < losses[1]
    assert [p.name for p in (tmp_path / name).iterdir()] == ["epoch-00003"]
