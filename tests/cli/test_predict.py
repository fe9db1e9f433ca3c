"""Tests of `sparcml predict`: output and error messages."""

import re
import resource
import subprocess
import sys

import numpy as np
import pytest

from sparcml.linear import Rows, write_svmlight
from sparcml.linear.training.model import Model

from .inside import called

X = np.array([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
LABELS = [7, 3, 3, 3]
WEIGHTS = np.array([1.0, -1.5, 0.25], np.float32)


def model(intercept, loss, classes=None, **more):
    return Model(WEIGHTS[None], np.array([intercept]), loss, classes, **more)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    write_svmlight("data.svm", Rows.of(X, LABELS))
    model(-0.5, "logistic", (3.0, 7.0)).save("m")
    return tmp_path


@pytest.mark.parametrize("where", ["output", "file"])
def test_one_line_per_row(folder, where, monkeypatch, capfd):
    margins = (X @ WEIGHTS - 0.5).tolist()  # 1.5, -0.25, -2, -0.5
    expected = {
        "labels": [7.0, 3.0, 3.0, 3.0],
        "margins": margins,
        "probabilities": [1 / (1 + np.exp(-m)) for m in margins],
    }
    to = ("--out", "found") if where == "file" else ()
    for what, numbers in expected.items():
        arguments = ("predict", "m", "data.svm", "--what", what, *to)
        code, out, err = called(monkeypatch, capfd, *arguments)
        assert code == 0
        lines = (folder / "found").read_text() if to else out
        np.testing.assert_allclose([float(x) for x in lines.split()], numbers, rtol=1e-8)
        assert lines.count("\n") == 4
        assert err.startswith("4 rows, accuracy 100.00%, mean logistic loss 0.3")
        assert not (out and to)


@pytest.mark.slow
@pytest.mark.parametrize("classes", [(3.0, 7.0), ("ham", "other", "spam")])
def test_every_damaged_byte_of_a_model_is_one_line(folder, classes, monkeypatch, capfd):
    """A flipped bit leaves the answer as it was, or it is reported with the model's name."""
    weights = np.zeros((1 if len(classes) == 2 else 3, 40), np.float32)
    weights[:, 1:3] = [1.0, -1.5]
    saved = Model(weights, np.zeros(len(weights)), "logistic", classes)
    saved.save("model.npz")
    good = (folder / "model.npz").read_bytes()
    arguments = ("predict", "model.npz", "data.svm", "--what", "margins")
    right = called(monkeypatch, capfd, *arguments)
    assert right[0] == 0
    for at in range(len(good)):
        for bit in (at % 8, (at + 5) % 8):
            bad = bytearray(good)
            bad[at] ^= 1 << bit
            (folder / "model.npz").write_bytes(bad)
            code, out, err = called(monkeypatch, capfd, *arguments)
            if code == 0:
                assert (out, err) == right[1:], (at, bit)
            else:
                assert (code, out, err.count("\n")) == (1, "", 1), (at, bit, err)
                assert err.startswith("sparcml predict: model.npz: "), (at, bit, err)
                assert re.search(r"damaged: .|not a sparcml model", err), (at, bit, err)


def test_unknown_labels(folder, monkeypatch, capfd):
    write_svmlight("data.svm", Rows.of(X, [7, 3, 0, 0]))
    assert "2 of 4 rows" in called(monkeypatch, capfd, "predict", "m", "data.svm")[2]
    write_svmlight("data.svm", Rows.of(X, [0, 0, 0, 0]))
    assert (
        "none labelled 3 or 7" in called(monkeypatch, capfd, "predict", "m", "data.svm")[2]
    )


def test_many_classes(folder, monkeypatch, capfd):
    """Margins and probabilities have one column per class, in the order of the labels."""
    weights = np.array([[1.0, 0, 0], [0, 2, 0], [0, 0, 1]], np.float32)
    Model(weights, np.array([0.5, 0.0, 0.0]), "logistic", (3.0, 5.5, 7.0)).save("m")
    expected = {
        "labels": [[3.0], [7.0], [5.5], [3.0]],
        "margins": (X @ weights.T + [0.5, 0, 0]).tolist(),
    }
    for what, rows in expected.items():
        arguments = ("predict", "m", "data.svm", "--what", what)
        code, out, err = called(monkeypatch, capfd, *arguments)
        assert code == 0
        assert [[float(x) for x in line.split()] for line in out.splitlines()] == rows
        assert err.startswith("4 rows, accuracy 25.00%, mean logistic loss ")
        assert err.endswith(" over 3 one-vs-rest models\n")
    _, out, _ = called(
        monkeypatch, capfd, "predict", "m", "data.svm", "--what", "probabilities"
    )
    chances = np.array([[float(x) for x in line.split()] for line in out.splitlines()])
    single = 1 / (1 + np.exp(-np.array(expected["margins"])))
    np.testing.assert_allclose(chances, single / single.sum(1, keepdims=True), rtol=1e-6)


def test_numbers(folder, monkeypatch, capfd):
    model(0.0, "squared").save("m")
    code, out, err = called(monkeypatch, capfd, "predict", "m", "data.svm")
    assert (code, out) == (0, "2\n0.25\n-1.5\n0\n")
    mean = np.mean((X @ WEIGHTS - LABELS) ** 2 / 2)
    assert err == f"4 rows, mean squared loss {mean:.6f}\n"


def test_first_index_is_that_of_training(folder, monkeypatch, capfd):
    """The text alone does not show it, without an index 0."""
    (folder / "data.svm").write_text("3 2:4\n")
    model(0.0, "squared", zero_based=True).save("m")
    assert called(monkeypatch, capfd, "predict", "m", "data.svm")[1] == "1\n"
    model(0.0, "squared", zero_based=False).save("m")
    assert called(monkeypatch, capfd, "predict", "m", "data.svm")[1] == "-6\n"


# (what the model is, what the text is, code, message)
MISTAKES = {
    "no model": ("", "1 1:1\n", 1, "m: not a sparcml model"),
    "malformed": (3, "1 1:1\nx 3:1\n", 1, "data.svm, line 2, column 1: "),
    "empty": (3, "", 1, "data.svm: no rows"),
    "no text": (3, None, 2, "no file at 'data.svm'"),
    "no probabilities": (3, "1 1:1\n", 2, "loss must be logistic, got hinge"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_one_line(folder, mistake, monkeypatch, capfd):
    known, text, code, message = MISTAKES[mistake]
    if isinstance(known, int):
        Model(np.ones((1, known)), np.zeros(1), "hinge", (0.0, 1.0)).save("m")
    else:
        (folder / "m").write_text(known)
    (folder / "data.svm").unlink()
    if text is not None:
        (folder / "data.svm").write_text(text)
    what = ("--what", "probabilities") if mistake == "no probabilities" else ()
    found, out, err = called(monkeypatch, capfd, "predict", "m", "data.svm", *what)
    assert (found, out, err.count("\n")) == (code, "", 1), err
    assert err.startswith("sparcml predict: ")
    assert message in err


def test_inputs_that_cannot_be_read(folder, monkeypatch, capfd):
    code, _, err = called(monkeypatch, capfd, "predict", "nope", "data.svm")
    assert (code, "no file at 'nope'" in err) == (2, True)
    code, _, err = called(monkeypatch, capfd, "predict", "m", "-", "/dev/stdin")
    assert (code, "standard input can be read once" in err) == (2, True)


@pytest.mark.parametrize("name", ["m", "data.svm"])
def test_an_output_is_no_input(folder, name, monkeypatch, capfd):
    before = (folder / name).read_bytes()
    arguments = ("predict", "m", "data.svm", "--out", str(folder / name))
    code, out, err = called(monkeypatch, capfd, *arguments)
    assert (code, out) == (2, "")
    assert f"{name}' is also an input; choose another file" in err
    assert (folder / name).read_bytes() == before


def test_features_that_the_model_lacks_are_ignored(folder, monkeypatch, capfd):
    text = (folder / "data.svm").read_text().splitlines()
    (folder / "more.svm").write_text(f"{text[0]} 5:1 9:1\n{text[1]} 9:2\n")
    _, expected, _ = called(monkeypatch, capfd, "predict", "m", "data.svm")
    code, out, err = called(monkeypatch, capfd, "predict", "m", "more.svm")
    assert (code, out) == (0, "".join(expected.splitlines(keepends=True)[:2]))
    assert err.endswith("; ignored 3 values of 2 features that the model lacks\n")


def test_a_model_of_few_columns(folder, monkeypatch, capfd):
    columns = np.array([0, 2, 2**31 - 2], np.uint32)
    few = Model(WEIGHTS[None], np.zeros(1), "squared", columns=columns, width=2**31)
    few.save("m")
    loaded = Model.load("m")
    assert loaded.columns is not None
    assert loaded.weights.nbytes + loaded.columns.nbytes < 100
    (folder / "data.svm").write_text("0 1:1 2:5\n0 2147483647:1\n0 3:2 2147483649:1\n")
    code, out, err = called(monkeypatch, capfd, "predict", "m", "data.svm")
    assert (code, out) == (0, "1\n0.25\n-3\n")
    assert "ignored 1 values of 1 features" in err


def test_standard_input(folder):
    predicting = [sys.executable, "-m", "sparcml", "predict", "m"]
    piped = (folder / "data.svm").read_bytes()
    for given in (["-"], ["/dev/stdin"]):
        done = subprocess.run([*predicting, *given], input=piped, capture_output=True)
        assert (done.returncode, done.stdout) == (0, b"7\n3\n3\n3\n"), done.stderr


def test_full_disk_leaves_the_old_file(folder, monkeypatch, capfd):
    (folder / "found").write_text("before")
    write_svmlight("data.svm", Rows.of(np.ones((4000, 3))))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, hard))
    try:
        arguments = ("predict", "m", "data.svm", "--out", "found")
        code, out, err = called(monkeypatch, capfd, *arguments)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "found: File too large" in err
    assert (folder / "found").read_text() == "before"
