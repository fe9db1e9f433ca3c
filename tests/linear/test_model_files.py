"""Tests of model and checkpoint files, of the validation split and of labels."""

import io
import json
import resource
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparcml
from sparcml.linear import DataError, Rows
from sparcml.linear.data.labels import encode_labels, one_vs_rest
from sparcml.linear.data.shuffle import train_validation_split
from sparcml.linear.training.checkpoint import Checkpoint
from sparcml.linear.training.model import FORMAT, VERSION, Model
from sparcml.linear.training.npz import write_npz

from .problems import dense, problem


@contextmanager
def at_most(size):
    """Limit the size of files, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def some(features=1000, used=5, dtype=np.float32, classes=(3.0, 7.0)):
    weights = np.zeros((1 if len(classes) == 2 else len(classes), features), dtype)
    weights[-1, :used] = np.arange(1, used + 1) / 3
    intercepts = np.linspace(0.1, 0.3, len(weights))
    return Model(weights, intercepts, "logistic", classes, True, {"epochs": 2})


@pytest.mark.parametrize("used", [5, 900])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("classes", [(3.0, 7.0), (-1.0, 0.5, 9.0)])
def test_model_round_trip(tmp_path, used, dtype, classes):
    model = some(used=used, dtype=dtype, classes=classes)
    model.save(tmp_path / "m")
    found = Model.load(tmp_path / "m")
    assert found.weights.dtype == dtype
    np.testing.assert_array_equal(found.weights, model.weights)
    np.testing.assert_array_equal(found.intercepts, model.intercepts)
    kept = ("loss", "classes", "zero_based", "metadata")
    assert [getattr(found, k) for k in kept] == [getattr(model, k) for k in kept]
    found.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()


def test_predictions():
    rows = Rows.of(np.array([[3.0, 0.0], [0.0, -1.0], [0.0, 0.0]]))
    model = Model(np.array([[1.0, 2.0]]), np.array([0.5]), "logistic", (0.0, 4.0))
    margins = model.margins(rows)
    assert margins.tolist() == [[3.5], [-1.5], [0.5]]
    assert model.labels(margins).tolist() == [4, 0, 4]
    second = 1 / (1 + np.exp(-margins))
    chances = np.hstack([1 - second, second])
    np.testing.assert_allclose(model.probabilities(margins), chances)
    assert model.probabilities(np.array([[-1e5]])).tolist() == [[1, 0]]
    with pytest.raises(DataError, match="must have 3 features, as the model, got 2"):
        Model(np.zeros((1, 3)), np.zeros(1), "hinge").margins(rows)
    with pytest.raises(ValueError, match="loss must be logistic"):
        Model(np.zeros((1, 2)), np.zeros(1), "hinge").probabilities(margins)


def test_shapes_must_fit():
    for weights, intercepts, classes in (
        (np.zeros(3), np.zeros(1), None),
        (np.zeros((1, 3)), np.zeros(2), None),
        (np.zeros((2, 3)), np.zeros(2), (1.0, 2.0)),
        (np.zeros((1, 3)), np.zeros(1), (1.0,)),
    ):
        with pytest.raises(ValueError, match="must have one"):
            Model(weights, intercepts, "logistic", classes)


def damaged(path):
    some().save(path)
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 0x40
    path.write_bytes(data)


def cut(path):
    some(used=900).save(path)
    path.write_bytes(path.read_bytes()[:-40])


def saved(path, header, **arrays):
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with path.open("wb") as file:
        np.savez(file, header=text, **arrays)


def other():
    buffer = io.BytesIO()
    np.savez(buffer, x=1)
    return buffer.getvalue()


GOOD = {
    "features": 4,
    "intercepts": ["0x0p+0"],
    "loss": "hinge",
    "classes": [-1, 1],
    "zero_based": False,
    "metadata": {},
}
FOREIGN = {
    "text": (lambda p: p.write_text("no model"), "not a sparcml model"),
    "empty": (lambda p: p.touch(), "not a sparcml model"),
    "numpy": (lambda p: p.write_bytes(other()), "another npz file"),
    "other": (
        lambda p: write_npz(p, "sparcml checkpoint", 1, {}, {}),
        "'sparcml checkpoint'",
    ),
    "later": (
        lambda p: write_npz(p, FORMAT, VERSION + 1, {}, {}),
        f"got {VERSION + 1}",
    ),
    "list": (lambda p: saved(p, [1]), "but None"),
    "pickle": (
        lambda p: write_npz(p, FORMAT, VERSION, GOOD, {"values": np.array([[{}]])}),
        "damaged",
    ),
    "nothing in it": (lambda p: write_npz(p, FORMAT, VERSION, {}, {}), "damaged"),
    "no weights": (lambda p: write_npz(p, FORMAT, VERSION, GOOD, {}), "damaged"),
    "few weights": (
        lambda p: write_npz(p, FORMAT, VERSION, GOOD, {"values": np.zeros((1, 3))}),
        "values must have 4 columns, got 3",
    ),
    "beyond": (
        lambda p: write_npz(
            p,
            FORMAT,
            VERSION,
            GOOD,
            {"values": np.ones((1, 1)), "indices": np.array([4], np.uint32)},
        ),
        "indices must be below 4",
    ),
    "a flipped bit": (damaged, "damaged"),
    "cut short": (cut, "damaged"),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_malformed_models_are_refused(tmp_path, kind):
    write, message = FOREIGN[kind]
    write(tmp_path / "m")
    with pytest.raises(DataError, match=message) as caught:
        Model.load(tmp_path / "m")
    assert str(tmp_path / "m") in str(caught.value)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_damaged_models_are_refused_or_the_same(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "damaged.npz"
    model = some()
    model.save(path)
    good = path.read_bytes()
    at = data.draw(st.integers(0, len(good) - 1))
    piece = data.draw(st.binary(min_size=1, max_size=40))
    rests = {"cut": b"", "overwritten": piece + good[at + len(piece) :],
             "inserted": piece + good[at:]}  # fmt: skip
    path.write_bytes(good[:at] + rests[data.draw(st.sampled_from(sorted(rests)))])
    try:
        found = Model.load(path)
    except DataError as error:
        reason = str(error)
    else:
        reason = str(path)
        np.testing.assert_array_equal(found.weights, model.weights)
        assert (found.intercepts, found.classes) == (model.intercepts, model.classes)
    assert str(path) in reason


def test_full_disk_leaves_the_old_model(tmp_path):
    path = tmp_path / "m"
    some().save(path)
    before = path.read_bytes()
    with (
        at_most(2000),
        pytest.raises(OSError, match="an existing one is unchanged") as caught,
    ):
        some(used=900).save(path)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def respread(parts, rank, ranks):
    return {"mine": sum(parts[k]["mine"] for k in range(rank, len(parts), ranks))}


def test_checkpoint_round_trip(tmp_path):
    place = Checkpoint(tmp_path / "new")

    def keep(comm):
        for passes in (9, 10):
            own = {"mine": np.array([comm.rank, passes])}
            common = {"all": np.arange(passes)}
            place.save(comm, (passes, 0), {"note": passes}, common, own)
        header, arrays = place.load(comm, respread)
        return header["note"], arrays["all"].size, arrays["mine"].tolist()

    found = sparcml.launch(keep, ranks=3)
    assert found == [(10, 10, [rank, 10]) for rank in range(3)]
    assert [p.name for p in place.folder.iterdir()] == ["epoch-00010"]
    again = sparcml.launch(lambda comm: place.load(comm, respread)[1]["mine"].tolist(), 2)
    assert again == [[0 + 2, 20], [1, 10]]


def test_failed_write_leaves_the_previous_checkpoint(tmp_path):
    place = Checkpoint(tmp_path)

    def keep(comm, passes, size):
        own = {"mine": np.full(size if comm.rank == 1 else 1, comm.rank)}
        place.save(comm, (passes, 0), {}, {"all": np.zeros(3)}, own)

    sparcml.launch(lambda comm: keep(comm, 1, 1), ranks=2)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    with at_most(4000), pytest.raises((OSError, DataError), match="File too large"):
        sparcml.launch(lambda comm: keep(comm, 2, 1000), ranks=2)
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before
    sparcml.launch(lambda comm: keep(comm, 2, 1000), ranks=2)
    assert place.newest() == tmp_path / "epoch-00002"


def test_no_checkpoint(tmp_path):
    with sparcml.world() as comm, pytest.raises(DataError, match="no checkpoint"):
        Checkpoint(tmp_path).load(comm, respread)


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_validation_split_does_not_depend_on_the_number_of_ranks(ranks):
    rows = problem(40, 30)

    def work(comm):
        return train_validation_split(comm, rows.part(comm.rank, comm.size), 0.3, seed=4)

    train, held_out = zip(*sparcml.launch(work, ranks), strict=True)
    with sparcml.world() as comm:
        alone = train_validation_split(comm, rows, 0.3, seed=4)
    for parts, whole in zip((train, held_out), alone, strict=True):
        np.testing.assert_array_equal(np.vstack([dense(p) for p in parts]), dense(whole))
        np.testing.assert_array_equal(
            np.concatenate([p.labels for p in parts]), whole.labels
        )
        firsts = np.cumsum([0, *(len(p) for p in parts)])
        assert [p.first for p in parts] == firsts[:-1].tolist()
        assert {p.total for p in parts} == {firsts[-1]} == {len(whole)}
    assert len(alone[1]) == 12
    both = np.vstack([dense(each) for each in alone])
    np.testing.assert_array_equal(np.unique(both, axis=0), np.unique(dense(rows), axis=0))


@pytest.mark.parametrize("share", [0.01, 0.99])
def test_validation_split_must_not_be_empty(share):
    with sparcml.world() as comm, pytest.raises(DataError, match="need rows"):
        train_validation_split(comm, problem(20, 5), share, seed=0)


def test_encode_labels():
    def work(comm, labels):
        mine = np.array(labels[comm.rank], float)
        return encode_labels(comm, Rows.of(np.zeros((mine.size, 1)), mine))

    found = sparcml.launch(lambda comm: work(comm, [[2, 2], [2], [1]]), 3)
    assert [rows.labels.tolist() for rows, _ in found] == [[1, 1], [1], [0]]
    assert {classes for _, classes in found} == {(1.0, 2.0)}
    found = sparcml.launch(lambda comm: work(comm, [[5, -3], [9, 5]]), 2)
    assert [rows.labels.tolist() for rows, _ in found] == [[1, 0], [2, 1]]
    assert {classes for _, classes in found} == {(-3.0, 5.0, 9.0)}
    with pytest.raises(DataError, match=r"got one class \(2\)"):
        sparcml.launch(lambda comm: work(comm, [[2, 2], [2]]), 2)
    with pytest.raises(DataError, match=r"must be integers, got 1, 1\.5, 2, 3, 4, \.\.\."):
        sparcml.launch(lambda comm: work(comm, [[1, 2, 1.5], [4, 5, 3]]), 2)


def test_one_vs_rest():
    codes = np.array([0, 1, 2, 1])
    assert one_vs_rest(codes, 3, 1).tolist() == [-1, 1, -1, 1]
    assert one_vs_rest(codes[:2], 2, 0).tolist() == [-1, 1]
