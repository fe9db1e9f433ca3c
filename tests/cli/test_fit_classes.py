"""Tests of `sparcml fit` with several classes and with weights."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sparcml
from sparcml.errors import DataError
from sparcml.linear import SCD, SGD, Constant, Rows, read_svmlight, write_svmlight
from sparcml.linear.data.labels import parse_class_weight
from sparcml.linear.training.model import Model

from ..linear.problems import problem
from .fitting import config, trained
from .inside import called

CLASSES = (-4.0, 0.0, 7.0)


@pytest.fixture
def text(tmp_path):
    """120 rows of 300 features in three classes, by their margins."""
    rows = problem(signs=False, dtype=np.float32)
    labels = np.array(CLASSES)[np.digitize(rows.labels, [-1.0, 1.0])]
    write_svmlight(tmp_path / "train.svm", replace(rows, labels=labels))
    return tmp_path / "train.svm"


def against_others(text, label):
    rows = read_svmlight(text, features=300)
    return replace(rows, labels=np.where(rows.labels == label, 1.0, -1.0))


def test_classes_are_one_vs_rest(text):
    trained(config(text), 1)
    model = Model.load(text.with_name("model"))
    assert model.classes == CLASSES
    solver = SGD(learning_rate=Constant(0.5), batch_size=16, epochs=3, seed=3)
    for k, label in enumerate(CLASSES):
        with sparcml.world() as comm:
            state = solver.run(comm, against_others(text, label))
        np.testing.assert_array_equal(model.weights[k], state.weights)
        assert model.intercepts[k] == state.intercept


@pytest.mark.parametrize("how", [{}, {"solver": "scd", "learning_rate": None, "l2": 0.01}])
@pytest.mark.parametrize("ranks", [1, 3])
def test_resume_with_several_classes(text, tmp_path, how, ranks):
    options = config(text, validation_fraction=0.2, **how)
    expected, results = trained(options, ranks)
    folder = tmp_path / "checkpoints"
    trained(replace(options, epochs=2, checkpoint=folder), ranks)
    resumed_model, resumed = trained(
        replace(options, checkpoint=folder, resume=True), ranks
    )
    assert resumed_model == expected
    assert resumed[0].accuracy == results[0].accuracy > 0.4
    assert len(resumed[0].history.epochs) == 3


@pytest.mark.parametrize("ranks", [1, 3])
def test_classes_may_be_words(text, ranks, monkeypatch, capfd):
    """Three words in place of three numbers: the same weights, and predictions as words."""
    numbers, _ = trained(config(text), ranks)
    weights = Model.load(text.with_name("model")).weights
    words = dict(zip(("-4", "0", "7"), ("apple", "pear", "plum"), strict=True))
    lines = [line.partition(" ") for line in text.read_text().splitlines()]
    text.write_text("".join(f"{words[label]} {rest}\n" for label, _, rest in lines))
    assert trained(config(text), ranks)[0] != numbers
    model = Model.load(text.with_name("model"))
    assert model.classes == ("apple", "pear", "plum")
    np.testing.assert_array_equal(model.weights, weights)
    monkeypatch.chdir(text.parent)
    code, out, err = called(monkeypatch, capfd, "predict", "model", "train.svm")
    assert code == 0
    right = [
        found == words[label]
        for found, (label, _, _) in zip(out.split(), lines, strict=True)
    ]
    assert f"accuracy {np.mean(right):.2%}" in err
    page = (Path(__file__).parents[2] / "docs" / "linear.md").read_text()
    assert "their labels are words or integers" in page


def test_several_classes_with_scd(text):
    trained(config(text, solver="scd", learning_rate=None, l2=0.05, epochs=None), 2)
    model = Model.load(text.with_name("model"))
    with sparcml.world() as comm:
        for k, label in enumerate(CLASSES):
            rows = against_others(text, label)
            state = SCD(penalty=replace(SCD().penalty, l2=0.05), seed=3).run(comm, rows)
            want = state.weights(comm, 300)
            np.testing.assert_allclose(model.weights[k], want, atol=1e-3)


def test_predicted_labels(text, monkeypatch, capfd):
    monkeypatch.chdir(text.parent)
    arguments = (
        "fit",
        "train.svm",
        "--out",
        "m",
        "--epochs",
        "20",
        "--validation-fraction",
        "0.1",
    )
    code, out, err = called(monkeypatch, capfd, *arguments)
    assert code == 0
    assert err.count("\n") == err.count("epoch ")
    assert "3 (-4, 0, 7), one-vs-rest" in out
    assert "indices from 1" in out
    assert "the best on the validation set" in out
    code, out, err = called(monkeypatch, capfd, "predict", "m", "train.svm")
    assert code == 0
    labels = np.array([float(line) for line in out.split()])
    assert set(labels) <= set(CLASSES)
    right = np.mean(labels == read_svmlight("train.svm").labels)
    assert right > 0.8
    assert f"accuracy {right:.2%}" in err


def test_weights_of_rows_and_classes(text):
    """A row of weight 0 is dropped; others have the weights that the solver takes."""
    rng = np.random.default_rng(5)
    weights = rng.integers(0, 4, 120).astype(float)
    path = text.with_name("weights")
    path.write_text("".join(f"{w:g}\n" for w in weights))
    options = config(text, weights=path, class_weight="7:3,0:0.5")
    _, (single,) = trained(options, 1)
    _, results = trained(options, 3)
    np.testing.assert_allclose(results[0].model.weights, single.model.weights, atol=1e-5)
    rows = against_others(text, 7.0)
    labels = read_svmlight(text).labels
    factors = np.select([labels == 7, labels == 0], [3.0, 0.5], 1.0) * weights
    nonzero = factors > 0
    X = rows.to_scipy()[nonzero]
    rows_used = Rows.of(
        X, rows.labels[nonzero], weights=factors[nonzero] / factors[nonzero].mean()
    )
    with sparcml.world() as comm:
        state = SGD(learning_rate=Constant(0.5), batch_size=16, epochs=3, seed=3).run(
            comm, rows_used
        )
    np.testing.assert_allclose(single.model.weights[2], state.weights, atol=1e-6)


def test_balanced_classes(text):
    _, (results, _) = trained(
        config(text, class_weight="balanced", validation_fraction=0.1), 2
    )
    _, (other,) = trained(config(text, class_weight="balanced"), 1)
    rows = other.data.train
    assert rows.weights is not None
    masses = [rows.weights[rows.labels == k].sum() for k in range(3)]
    np.testing.assert_allclose(masses, 40.0)
    assert results.data.train.total == 108


MISTAKES = {
    "short": ("1\n2\n", (), "weights: 2 weights for 120 rows"),
    "no number": ("1\nx\n", (), "weights, line 2: a weight must be a finite number"),
    "negative": ("1\n1\n-1\n", (), "weights, line 3: a weight must be"),
    "nothing": ("0\n" * 120, (), "weights must not all be 0"),
    "few": ("0\n" * 119 + "1\n", ("--validation-fraction", "0.5"), "of 1 rows"),
    "label": (
        "1\n" * 120,
        ("--class-weight", "5:2"),
        "must name existing classes, got [5.0]",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_weights_error_is_one_line(text, mistake, monkeypatch, capfd):
    content, options, message = MISTAKES[mistake]
    monkeypatch.chdir(text.parent)
    text.with_name("weights").write_text(content)
    arguments = ("fit", "train.svm", "--out", "m", "--weights", "weights", *options)
    code, out, err = called(monkeypatch, capfd, *arguments)
    assert (code, out, err.count("\n")) == (1, "", 1), err
    assert message in err


def test_parse_class_weight():
    assert parse_class_weight("1:5,-1:0.5") == {1.0: 5.0, -1.0: 0.5}
    assert parse_class_weight("balanced") == "balanced"
    for text in ("even", "1", "1:x", "1:2,3"):
        with pytest.raises(ValueError, match="class-weight must be balanced or LABEL"):
            parse_class_weight(text)
    with pytest.raises(ValueError, match="finite and >= 0"):
        parse_class_weight("1:-1")


def test_short_weights_file_raises_on_all_ranks(text):
    path = text.with_name("weights")
    path.write_text("1\n")
    with pytest.raises(DataError, match="1 weights for 120 rows"):
        trained(config(text, weights=path), 3)
