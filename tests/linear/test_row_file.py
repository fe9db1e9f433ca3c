"""Tests of binary row files and the row cache."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import sparcml
from sparcml.linear import DataError, Rows, load_rows, read_svmlight, save_rows

ARRAYS = ("indptr", "indices", "values", "labels", "weights")


def example_rows(count=11, dtype=np.float32, weights=True):
    rng = np.random.default_rng(1)
    dense = rng.standard_normal((count, 7)).astype(dtype) * (rng.random((count, 7)) < 0.4)
    given = rng.random(count) if weights else None
    return Rows.of(dense, rng.standard_normal(count), features=99, weights=given)


def same(a, b):
    if (a.features, a.first, a.total) != (b.features, b.first, b.total):
        return False
    pairs = [(getattr(a, name), getattr(b, name)) for name in ARRAYS]
    return all(
        x is y or (x.dtype == y.dtype and np.array_equal(x, y))
        for x, y in pairs
        if x is not None or y is not None
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("count", [0, 11])
def test_round_trip(tmp_path, dtype, weights, count):
    rows = example_rows(count, dtype, weights)
    save_rows(tmp_path / "a", rows)
    back = load_rows(tmp_path / "a")
    assert same(back, rows)
    assert not back.values.flags.writeable  # mapped, not read
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize(("writers", "readers"), [(1, 3), (3, 1), (3, 4), (4, 16)])
def test_other_ranks(tmp_path, writers, readers):
    rows = example_rows()
    path = tmp_path / "a"
    sparcml.launch(lambda c: save_rows(path, rows.part(c.rank, c.size), c), writers)
    parts = sparcml.launch(lambda comm: load_rows(path, comm), readers)
    for rank, part in enumerate(parts):
        assert same(part, rows.part(rank, readers))
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("zero_based", [None, False, True])
@pytest.mark.parametrize("weights", [False, True])
def test_first_index_is_saved(tmp_path, zero_based, weights):
    rows = replace(example_rows(weights=weights), zero_based=zero_based)
    save_rows(tmp_path / "a", rows)
    back = load_rows(tmp_path / "a")
    assert back.zero_based is zero_based
    assert same(back, rows)


def test_part_is_saved_without_the_rest(tmp_path):
    part = example_rows().take(2, 5)
    save_rows(tmp_path / "a", replace(part, first=0, total=3))
    assert load_rows(tmp_path / "a").labels.tolist() == part.labels.tolist()


def damaged(path, at, data):
    content = bytearray(path.read_bytes())
    content[at : at + len(data)] = data
    path.write_bytes(content)


@pytest.mark.parametrize("ranks", [1, 2])
def test_malformed_files_are_refused(tmp_path, ranks):
    good = tmp_path / "good"
    save_rows(good, example_rows())
    bad = {name: tmp_path / name for name in ("text", "header", "version", "short", "ends")}
    for path in bad.values():
        path.write_bytes(good.read_bytes())
    bad["text"].write_text("1 1:1\n")
    damaged(bad["header"], 20, b"\xff")
    damaged(bad["version"], 8, b"\x07")
    bad["short"].write_bytes(good.read_bytes()[:-1])
    damaged(bad["ends"], 128 + 8, b"\xff\xff")

    def refusals(comm):
        messages = {}
        for name, path in bad.items():
            with pytest.raises(DataError) as caught:
                load_rows(path, comm)
            messages[name] = str(caught.value)
        with pytest.raises(DataError, match="made from other data"):
            load_rows(good, comm, bytes(31) + b"x")
        return messages

    messages = sparcml.launch(refusals, ranks)[0]
    assert "not a file of save_rows" in messages["text"]
    assert "header is damaged" in messages["header"]
    assert "must have version 2, got 7" in messages["version"]
    assert "the file must have" in messages["short"]
    assert "row offsets must ascend" in messages["ends"]
    assert all(f"{bad[name]}" in text for name, text in messages.items())


def test_full_disk_leaves_the_old_file(tmp_path):
    """A limit on file sizes emulates a full disk."""
    path = tmp_path / "a"
    save_rows(path, example_rows())
    code = f"""
import resource
from tests.linear.test_row_file import example_rows, save_rows
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 14, 1 << 14))
try:
    save_rows({str(path)!r}, example_rows(20_000))
except OSError as error:
    print(type(error).__name__, error.errno)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "OSError 27\n", done.stderr
    assert same(load_rows(path), example_rows())
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("where", ["beside", "user"])
def test_text_is_read_once(tmp_path, where, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    folder = tmp_path / "data"
    folder.mkdir()
    text = folder / "a.svm"
    text.write_text("1 1:1 4:2\n-1 2:1\n1 3:1\n")
    first = read_svmlight(text, cache=where)
    there = folder if where == "beside" else tmp_path / "home" / "sparcml"
    (written,) = (path for path in there.iterdir() if path.suffix == ".rows")
    stamp = written.stat().st_mtime_ns
    assert same(read_svmlight(text, cache=where), first)
    assert same(first, read_svmlight(text))
    assert same(read_svmlight(folder, cache=where), first)  # the cache is no shard
    parts = sparcml.launch(lambda comm: read_svmlight(text, comm, cache=where), 2)
    assert all(same(part, first.part(rank, 2)) for rank, part in enumerate(parts))
    assert written.stat().st_mtime_ns == stamp
    assert read_svmlight(text, features=9, cache=where).features == 9
    text.write_text("5 1:1\n")
    os.utime(text, ns=(1, 1))
    assert read_svmlight(text, cache=where).labels.tolist() == [5]
    written.write_bytes(b"nonsense")
    assert read_svmlight(text, cache=where).labels.tolist() == [5]


def test_unwritable_cache_warns(tmp_path):
    text = tmp_path / "a.svm"
    text.write_text("1 1:1\n" * 1000)
    code = f"""
import resource, warnings
from sparcml.linear import read_svmlight
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 12, 1 << 12))
with warnings.catch_warnings(record=True) as caught:
    print(len(read_svmlight({str(text)!r}, cache="beside")))
print(caught[0].message)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    count, messages = done.stdout.splitlines()
    assert count == "1000"
    assert "could not be written: [Errno 27] File too large" in messages
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.svm"]


def test_bad_arguments(tmp_path):
    with pytest.raises(ValueError, match="cache must be 'beside', 'user' or None"):
        read_svmlight(tmp_path, cache="here")  # type: ignore[arg-type]
