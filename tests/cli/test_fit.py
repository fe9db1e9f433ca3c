"""Tests of `sparcml fit`: models, options and error messages."""

import json
import re
import resource
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import typer

import sparcml
from sparcml.cli.app import RENAMED
from sparcml.cli.fit import _with_config, config_words
from sparcml.cli.fit_report import _advice
from sparcml.cli.launch.launcher import find_mpiexec
from sparcml.errors import DataError
from sparcml.linear import SGD, Constant, Penalty, Rows, write_svmlight
from sparcml.linear.training.config import TrainingConfig, default_batch_size
from sparcml.linear.training.history import EpochRecord, History
from sparcml.linear.training.model import Model
from sparcml.linear.training.single_process import single_process_seconds

from ..linear.problems import problem
from .fitting import config, trained
from .inside import called
from .ranks import needs_mpi4py, needs_mpiexec

FIT = [sys.executable, "-m", "sparcml", "fit"]


@pytest.fixture
def text(tmp_path) -> Path:
    """120 rows of 300 features."""
    write_svmlight(tmp_path / "train.svm", problem(dtype=np.float32))
    return tmp_path / "train.svm"


@pytest.mark.parametrize(
    "options", [(), ("--communication", "dense"), ("--batch-size", "7")]
)
def test_model_equals_the_solver(text, options, monkeypatch, capfd):
    monkeypatch.chdir(text.parent)
    common = (
        "train.svm",
        "--out",
        "m",
        "--learning-rate",
        "0.5",
        "--epochs",
        "2",
        "--l2",
        "0.01",
    )
    code, out, err = called(
        monkeypatch, capfd, "fit", *common, "--features", "300", *options
    )
    assert code == 0
    assert re.fullmatch(r"(epoch \d/2: loss 0\.\d{6}, \d+\.\d\d s\n){2}", err)
    batch = 7 if "--batch-size" in options else 32
    rows = problem(dtype=np.float32)
    solver = SGD(
        batch_size=batch, epochs=2, learning_rate=Constant(0.5), penalty=Penalty(l2=0.01)
    )
    with sparcml.world() as comm:
        state = solver.run(comm, rows)
    model = Model.load("m")
    np.testing.assert_array_equal(model.weights, state.weights[None])
    assert model.intercepts.tolist() == [state.intercept]
    assert (model.classes, model.zero_based, model.loss) == ((-1, 1), False, "logistic")
    assert f"{state.losses[1]:.6f}" in out
    assert "120 x 300" in out
    assert all(len(line) <= 80 for line in out.splitlines())


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge", "squared"])
def test_any_number_of_ranks_and_either_communication(text, loss):
    options = config(text, loss=loss, validation_fraction=0.25, learning_rate=0.1)
    _, (single,) = trained(options, 1)
    for ranks, communication in ((2, "sparse"), (3, "dense")):
        _, results = trained(replace(options, communication=communication), ranks)
        for each in results:
            np.testing.assert_allclose(each.model.weights, single.model.weights, atol=1e-5)
            assert each.accuracy == single.accuracy
            assert each.history.bytes > 0
            assert each.history.dense_bytes == pytest.approx(
                3 * 6 * 2 * (ranks - 1) / ranks * 301 * 4
            )


# What is wrong with the text or the options, and what is said metadata it.
LINES = "1 1:1 2:1\n-1 2:1\n1 3:1\n"
MISTAKES = {
    "malformed": ("1 1:1\n-1 2:x\n", (), "train.svm, line 2, column 6: "),
    "order": ("1 1:1\n-1 2:1 1:1\n", (), "train.svm, line 2, column "),
    "empty": ("", (), "train.svm: no rows"),
    "one class": ("1 1:1\n1 2:1\n", (), "got one class (1)"),
    "numbers": ("1 1:1\n2.5 2:1\n3 1:1\n", (), "must be integers, got 1, 2.5, 3"),
    "beyond": (LINES, ("--features", "2"), "train.svm, line 3, column "),
    "nan": ("1 1:nan\n-1 2:1\n", (), "train.svm, line 1, column "),
    "nothing held out": (LINES, ("--validation-fraction", "0.01"), "is 0 rows"),
    "diverged": (
        "1 1:1e9\n-1 1:1e9\n1 1:2e9\n",
        ("--loss", "squared", "--learning-rate", "1e9"),
        "lower the learning rate, Constant(learning_rate=1000000000.0)",
    ),
    "large loss": (
        "1 1:1\n-1 1:1\n-1 1:2\n",
        ("--learning-rate", "1e30"),
        "lower the learning rate, Constant(learning_rate=1e+30)",
    ),
    "large best loss": (
        "1 1:1\n-1 1:1\n-1 1:2\n" * 4,
        ("--learning-rate", "1e30", "--validation-fraction", "0.3", "--loss", "hinge"),
        "lower the learning rate, Constant(learning_rate=1e+30)",
    ),
    "no checkpoint": (
        LINES,
        ("--checkpoint", "c", "--resume"),
        "no checkpoint to resume from",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_data_error_is_one_line(tmp_path, mistake, monkeypatch, capfd):
    content, options, message = MISTAKES[mistake]
    (tmp_path / "train.svm").write_text(content)
    monkeypatch.chdir(tmp_path)
    arguments = ("fit", "train.svm", "--out", "m", "--no-progress", *options)
    code, out, err = called(monkeypatch, capfd, *arguments)
    assert (code, out, err.count("\n")) == (1, "", 1), err
    assert err.startswith("sparcml fit: ")
    assert message in err
    assert not (tmp_path / "m").exists()


REFUSED = {
    "no file": (("none.svm",), "no file at 'none.svm'"),
    "twice": (("-", "-"), "standard input can be read once; give - once"),
    "loss": (("--loss", "huber"), "loss must be one of logistic, "),
    "solver": (("--solver", "lbfgs"), "solver must be sgd or scd, got 'lbfgs'"),
    "schedule": (
        ("--schedule", "cosine"),
        "schedule must be constant or inverse or exponential",
    ),
    "batch": (("--batch-size", "0"), "batch_size must be >= 1, got 0"),
    "epochs": (("--epochs", "0"), "epochs must be >= 1, got 0"),
    "oktopk": (("--compress", "half", "--algorithm", "oktopk", "--epochs", "0"), "epochs"),
    "learning rate": (("--learning-rate", "-1"), "rate must be finite and > 0, got -1.0"),
    "kink": (("--solver", "scd", "--loss", "hinge"), "whose kinks stop"),
    "scd without gradients": (
        ("--solver", "scd", "--compress", "half"),
        "--compress must be left out with --solver scd",
    ),
    "scd and momentum": (
        ("--solver", "scd", "--momentum", "0.9"),
        "--momentum must be left out with --solver scd; it is an option of --solver sgd",
    ),
    "scd and algorithm": (
        ("--solver", "scd", "--algorithm", "ring"),
        "--algorithm must be",
    ),
    "scd and rate": (
        ("--solver", "scd", "--learning-rate", "1"),
        "--learning-rate must be",
    ),
    "sgd and block": (("--block-size", "7"), "--block-size must be left out with --solver"),
    "compressed and dense": (
        ("--compress", "half", "--communication", "dense"),
        "--compress must be left out with --communication dense",
    ),
    "algorithm of dense": (
        ("--algorithm", "ring", "--communication", "dense"),
        "--algorithm must be left out with --communication dense",
    ),
    "algorithm of a method": (
        ("--algorithm", "ring", "--compress", "powersgd:2"),
        "--algorithm must be left out with --compress powersgd:2",
    ),
    "no feedback": (("--algorithm", "oktopk"), "add --compress topk:0.01"),
    "decay": (("--decay", "0.1"), "add --schedule inverse"),
    "patience": (("--patience", "2"), "--patience needs a validation set; add --valid"),
    "unwritable": (("--out", "/proc/m"), "--out must be a file that can be written, got"),
    "out folder": (("--out", "."), "--out must be a file that can be written, got '.'"),
    "out is input": (
        ("--out", "./train.svm"),
        "--out 'train.svm' is also an input; choose",
    ),
    "out in input": ((".", "--out", "train.svm"), "--out 'train.svm' is also an input"),
    "out is weights": (("--weights", "w.svm", "--out", "w.svm"), "is also an input"),
    "plot is input": (("w.svg", "--plot", "w.svg"), "--plot 'w.svg' is also an input"),
    "no checkpoint folder": (
        ("--checkpoint", "train.svm"),
        "--checkpoint must be a folder, got the file 'train.svm'",
    ),
    "momentum": (("--momentum", "0.9", "--l1", "1"), "must be 0 with an l1 penalty"),
    "fraction": (("--validation-fraction", "1"), "must be in [0, 1), got 1"),
    "method": (
        ("--compress", "qsgd4"),
        "fit: --compress must be a sparsifier (topk:RATIO, ",
    ),
    "bits": (("--compress", "qsgd:many"), "qsgd: BITS must be an integer"),
    "resume": (("--resume",), "--checkpoint DIR"),
    "algorithm": (("--algorithm", "best"), "algorithm must be one of auto, "),
    "within": (("--checkpoint-every", "5"), "needs --checkpoint DIR, got 5"),
    "classes": (("--class-weight", "1"), "class-weight must be balanced or LABEL:WEIGHT"),
    "no classes": (("--class-weight", "1:2", "--loss", "squared"), "which has no classes"),
    "no weights": (("--weights", "none"), "no file at 'none'"),
    "ranks": (("-n", "0"), "ranks must be at least 1, got 0"),
    "network": (("-n", "2", "--network", "fast"), "fast"),
    "single": (("--network", "1gbit"), "network needs several ranks"),
    "plot": (("--plot", "p.doc"), "plot must end in one of "),
    "folder": (("--plot", "none/p.png"), "no folder at 'none'"),
    "standard output": (("--out", "-"), "--out must be a file, got '-'; try /dev/stdout"),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_invalid_options(text, mistake, monkeypatch, capfd):
    if "--plot" in REFUSED[mistake][0]:
        pytest.importorskip("matplotlib")
    options, message = REFUSED[mistake]
    monkeypatch.chdir(text.parent)
    for other in ("w.svm", "w.svg"):
        Path(other).symlink_to("train.svm")
    before = text.read_bytes()
    arguments = ("fit", "train.svm", "--out", "m", *options)
    code, out, err = called(monkeypatch, capfd, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert message in err
    assert text.read_bytes() == before


def test_fewer_rows_than_ranks(text):
    text.write_text(LINES)
    with pytest.raises(DataError, match="3 rows for 4 ranks; start at most 3"):
        trained(config(text), 4)


def test_a_full_disk(text, monkeypatch, capfd):
    monkeypatch.chdir(text.parent)
    arguments = ("fit", "train.svm", "--out", "m", "--epochs", "1", "--no-progress")
    assert called(monkeypatch, capfd, *arguments)[0] == 0
    before = Path("m").read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, hard))
    try:
        code, out, err = called(monkeypatch, capfd, *arguments, "--seed", "1")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "File too large" in err
    assert "'m'" in err
    assert Path("m").read_bytes() == before
    assert {p.name for p in Path().iterdir()} == {"m", "train.svm"}


# One value per option, none of which is the default.
GIVEN = TrainingConfig(
    files=[Path("-n"), Path("a b"), Path("4")],
    out=Path("--out"),
    loss="hinge",
    solver="scd",
    batch_size=4,
    epochs=4,
    learning_rate=1e-17,
    schedule="inverse",
    decay=1 / 3,
    warmup_epochs=4.0,
    momentum=0.4,
    block_size=4,
    l1=0.1,
    l2=0.3,
    intercept=False,
    seed=4,
    communication="dense",
    algorithm="ring",
    compress="topk:0.01",
    topology="ring",
    method="-",
    local_steps=4,
    class_weight="-1:5,1:0.5",
    weights=Path("-"),
    validation_fraction=0.25,
    patience=4,
    tol=-1.0,
    features=4,
    zero_based=False,
    cache=True,
    checkpoint=Path("-c"),
    checkpoint_every=4.5,
    resume=True,
)


@pytest.mark.parametrize("changes", [{}, {"zero_based": True}, {"files": [Path("--")]}])
def test_ranks_get_every_option_as_it_was_parsed(changes):
    config = replace(GIVEN, **changes)
    for field in fields(TrainingConfig):
        assert getattr(config, field.name) != field.default, f"add {field.name} to GIVEN"
    found = []

    @_with_config
    def command(config: TrainingConfig) -> None:
        found.append(config)

    only = typer.Typer()
    only.command()(command)
    only(config_words(config), standalone_mode=False)
    assert found == [config]


def test_values_of_options_that_look_like_the_input(tmp_path):
    """Only the input is replaced by a copy for the ranks; `--weights -` is a file here."""
    (tmp_path / "-").write_text("1\n0\n1\n1\n")
    engine = "mpi" if find_mpiexec() else "torch"
    options = ["-", "--weights", "-", "--out", "2", "-n", "2", "--engine", engine]
    done = subprocess.run(
        [*FIT, *options, "--class-weight=-1:2"],
        input=b"1 1:1\n1 2:1\n-1 3:1\n-1 4:1\n",
        cwd=tmp_path,
        capture_output=True,
        timeout=90,
    )
    assert done.returncode == 0, done.stderr
    weights = Model.load(tmp_path / "2").weights[0]
    assert weights[1] == 0  # the row of weight 0
    assert (weights[[0, 2, 3]] != 0).all()


def test_words_as_labels_from_standard_input_on_ranks(tmp_path, monkeypatch, capfd):
    """A pipe is copied for the ranks; labels return as words."""
    text = "\ufeffspam 1:1 2:1\nham 3:1\nspam 1:2\nham 3:1 4:1\n"
    engine = "mpi" if find_mpiexec() else "torch"
    options = ["-", "--out", "m", "-n", "2", "--engine", engine, "--class-weight", "spam:2"]
    done = subprocess.run(
        [*FIT, *options], input=text.encode(), cwd=tmp_path, capture_output=True, timeout=90
    )
    assert done.returncode == 0, done.stderr
    monkeypatch.chdir(tmp_path)
    assert Model.load("m").classes == ("ham", "spam")
    Path("test.svm").write_text("ham 1:1\nspam 3:1\nother 3:1\n")
    code, out, err = called(monkeypatch, capfd, "predict", "m", "test.svm")
    assert (code, out) == (0, "spam\nham\nham\n")
    assert err.startswith(
        "2 of 3 rows (1 with labels that the model lacks), accuracy 0.00%"
    )


@pytest.mark.parametrize("solver", ["sgd", "scd"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_only_active_columns_take_memory(tmp_path, solver, ranks):
    path = tmp_path / "train.svm"
    lines = [f"{i % 2} {i + 1}:1 {i + 900}:0.5\n" for i in range(20)]
    path.write_text("".join(lines) + "1 3:1 2147483647:1\n")
    options = config(path, features=None, solver=solver, learning_rate=None, l2=0.01)
    options = replace(options, checkpoint=tmp_path / "c", validation_fraction=0.2)
    _, results = trained(options, ranks)
    result = results[0]
    assert result.model.features == 2147483647
    assert result.model.weights.size <= 41
    saved = {a.name: a.stat().st_size for a in (tmp_path / "c").rglob("*.npz")}
    assert max(saved.values()) < 10_000
    resumed, again = trained(replace(options, resume=True, epochs=4), ranks)
    assert len(resumed) < 5_000
    assert again[0].model.columns.tolist() == result.model.columns.tolist()
    dense = config(path, features=1000, solver=solver, learning_rate=None, l2=0.01)
    path.write_text("".join(lines) + "1 3:1 1000:1\n")
    _, (other,) = trained(replace(dense, validation_fraction=0.2, epochs=4), 1)
    if solver == "sgd" or ranks == 1:  # steps of scd depend on the number of ranks
        expected = other.model.weights[0, result.model.columns[:-1]]
        np.testing.assert_allclose(again[0].model.weights[0, :-1], expected, atol=1e-5)


def test_default_batch_size_and_advice(text):
    assert default_batch_size(1, 10**6) == default_batch_size(4, 120) == 32
    assert default_batch_size(4, 10**6) == 1024
    folder = text.with_name("c")
    options = replace(config(text), batch_size=None, epochs=1, checkpoint=folder)
    trained(replace(options, batch_size=40), 1)
    trained(replace(options, resume=True, epochs=2), 3)  # with that of the checkpoint
    assert "batch_size=40" in Model.load(options.out).metadata["solver"]
    record = EpochRecord(0.1, None, 1.0, 0.6, 10, 100.0)
    assert "one process would be faster" in _advice(2, History([record]))
    assert not _advice(4, History([record]))
    assert "one process would be faster" in _advice(4, History([record] * 2), single=0.9)
    assert not _advice(2, History([record] * 2), single=1.1)
    assert not _advice(1, History([record]))


def test_zero_based_text(tmp_path):
    rows = Rows.of(np.array([[2.0, 0, 0], [0, 0, 1.0], [0, 1.0, 0]]), [1, -1, 1])
    write_svmlight(tmp_path / "train.svm", rows, zero_based=True)
    _, (results,) = trained(config(tmp_path / "train.svm", features=None), 1)
    assert results.model.zero_based
    assert results.model.features == 3


def test_plot_and_progress_bar(text, monkeypatch, capfd):
    image = pytest.importorskip("matplotlib.image")
    monkeypatch.chdir(text.parent)
    arguments = ("train.svm", "--out", "m", "--plot", "p.png", "--progress")
    code, _, err = called(
        monkeypatch, capfd, "fit", *arguments, "--validation-fraction", "0.2"
    )
    assert code == 0
    assert "rows/s" in err
    assert image.imread("p.png").shape[2] == 4


@needs_mpiexec
@needs_mpi4py
@pytest.mark.mpi
def test_on_processes(text, monkeypatch):
    """The command starts ranks itself or runs under mpiexec; a data error is one line."""
    folder = text.parent
    arguments = [
        "train.svm",
        "--epochs",
        "2",
        "--learning-rate",
        "0.5",
        "--features",
        "300",
    ]
    runs = {
        "itself": [*FIT, *arguments, "--out", "itself", "-n", "2"],
        "mpiexec": [
            str(find_mpiexec()),
            "-n",
            "2",
            *FIT,
            *arguments,
            "--out",
            "mpiexec",
        ],
    }
    for command in runs.values():
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0
        assert done.stderr.count("\n") == done.stderr.count("epoch ") == 2
        assert "2 (mpi)" in done.stdout
        assert "of dense" in done.stdout
    expected, _ = trained(config(text, batch_size=32, epochs=2, seed=0), 2)
    assert {(folder / name).read_bytes() for name in runs} == {expected}
    with text.open("a") as file:
        file.write("1 7:1 6:1\n")
    done = subprocess.run(runs["itself"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 1
    line = "sparcml fit: rank 1: train.svm, line 121, column 7: index 6 after 7: "
    assert done.stderr.startswith(line)
    assert done.stderr.count("\n") == 1


def test_model_metadata(text):
    trained(config(text), 2)
    metadata = Model.load(text.with_name("model")).metadata
    assert json.dumps(metadata)
    assert (metadata["rows"], metadata["features"], metadata["epochs"]) == (120, 300, 3)
    assert metadata["solver"] == (
        "SGD(learning_rate=Constant(learning_rate=0.5), batch_size=16, epochs=3, seed=3)"
    )


@pytest.mark.parametrize("option", ["--rate", "--held-out", "--steps"])
def test_options_of_version_0_1_name_their_successor(option, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "sparcml", "fit", "x.svm", "--out", "m", option, "1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert f"option {option} is {RENAMED[option]} since version 0.2" in done.stderr


@pytest.mark.parametrize("options", [{}, {"l2": 0.1, "momentum": 0.5}, {"loss": "hinge"}])
def test_time_of_one_process_is_measured_on_a_part_of_the_rows(text, options):
    """It must not change the model, whatever the options are."""
    chosen = replace(config(text), epochs=1, **options)
    result = trained(chosen, 3)[1][0]
    before = result.model.weights.copy()
    assert 0 < len(result.data.train) < result.data.train.total
    assert single_process_seconds(chosen, result.data) > 0
    np.testing.assert_array_equal(result.model.weights, before)
