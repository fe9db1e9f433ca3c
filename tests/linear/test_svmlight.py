"""Tests of reading LIBSVM text, with any number of ranks."""

import bz2
import gzip
import lzma
import os
import zipfile
from fractions import Fraction
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparcml
from sparcml.linear import DataError, read_svmlight
from sparcml.linear.data import svmlight

TEXT = """\
# a comment, then a blank line

1 1:2 5:0.125 # more
-1 qid:3 2:1e-3\t7:1\r
2.5
+1   3:-7 4:.5 5:5. 9:+1E+2#close
   -0.5 1:0
"""
WANT = [
    (1.0, {0: 2.0, 4: 0.125}),
    (-1.0, {1: 0.001, 6: 1.0}),
    (2.5, {}),
    (1.0, {2: -7.0, 3: 0.5, 4: 5.0, 8: 100.0}),
    (-0.5, {0: 0.0}),
]


def written(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def listed(rows):
    """Return rows in the form of WANT."""
    ends = rows.indptr
    return [
        (float(y), dict(zip(rows.indices[a:b].tolist(), rows.values[a:b], strict=True)))
        for y, a, b in zip(rows.labels, ends[:-1], ends[1:], strict=True)
    ]


@pytest.fixture(params=[np.float32, np.float64])
def dtype(request):
    return request.param


def test_a_file(tmp_path, dtype):
    rows = read_svmlight(written(tmp_path / "a", TEXT), dtype=dtype)
    assert rows.values.dtype == dtype
    assert listed(rows) == [(y, {i: dtype(v) for i, v in row.items()}) for y, row in WANT]
    assert (rows.features, rows.first, rows.total) == (9, 0, 5)


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
@pytest.mark.parametrize("block", [16, 1 << 20])
def test_each_rank_reads_its_part(tmp_path, ranks, block, monkeypatch):
    monkeypatch.setattr(svmlight, "BLOCK", block)  # shorter than lines are
    path = written(tmp_path / "a", TEXT * 3 + "7 12:1")
    parts = sparcml.launch(lambda comm: read_svmlight(path, comm), ranks)
    whole = listed(read_svmlight(path))
    assert len(whole) == 16
    assert [row for part in parts for row in listed(part)] == whole
    assert [part.first for part in parts] == list(
        np.cumsum([0] + [len(part) for part in parts[:-1]])
    )
    assert {(part.total, part.features) for part in parts} == {(16, 12)}


@pytest.mark.parametrize("compression", ["gzip", "bz2", "xz", "zstd"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_compressed(tmp_path, compression, ranks):
    if compression == "zstd":
        compress = pytest.importorskip("zstandard").compress
    else:
        compress = {"gzip": gzip, "bz2": bz2, "xz": lzma}[compression].compress
    members = compress(TEXT.encode()) + compress(TEXT.encode())  # files may have several
    path = written(tmp_path / "a", members)
    plain = read_svmlight(written(tmp_path / "b", TEXT * 2))
    parts = sparcml.launch(lambda comm: read_svmlight(path, comm), ranks)
    assert [row for part in parts for row in listed(part)] == listed(plain)
    damaged = written(tmp_path / "c", members[:-20])
    with pytest.raises(DataError, match=f"c: the {compression} file is damaged"):
        sparcml.launch(lambda comm: read_svmlight(damaged, comm), ranks)


@pytest.mark.parametrize("ranks", [1, 3])
def test_words_as_labels(tmp_path, ranks):
    path = written(tmp_path / "a", "\ufeffno 1:1\nyes 2:1\nno 3:1\ngröße 1:2\nyes\n")
    parts = sparcml.launch(lambda comm: read_svmlight(path, comm), ranks)
    assert {part.label_names for part in parts} == {("größe", "no", "yes")}
    assert [y for part in parts for y in part.labels] == [1, 2, 1, 0, 2]
    mixed = written(tmp_path / "b", "no 1:1 2:1 3:1 4:1\n" + "1 1:1 2:1 3:1 4:1\n")
    with pytest.raises(DataError, match=r"others are words|all words or all numbers"):
        sparcml.launch(lambda comm: read_svmlight(mixed, comm), ranks)


def test_other_formats_are_named(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.ones(3))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("train.svm", TEXT)
    for name, content, message in (
        (
            "a.parquet",
            b"PAR1....",
            "got a Parquet file; load it, and write it with write_svmlight",
        ),
        ("a.zip", None, "got a zip archive; unpack it first"),
        ("a.npz", None, "got an npz file of NumPy arrays; load it"),
        ("utf16", TEXT.encode("utf-16"), "got UTF-16 text; convert it to UTF-8"),
    ):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=message):
            read_svmlight(tmp_path / name)


def test_a_pipe_is_read_once(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    plain = read_svmlight(written(tmp_path / "a", TEXT))
    for content in (TEXT.encode(), gzip.compress(TEXT.encode())):
        writer = Thread(target=pipe.write_bytes, args=(content,))
        writer.start()
        assert listed(read_svmlight(pipe)) == listed(plain)
        writer.join()
    with pytest.raises(DataError, match="pipe can be read by one process only; write it"):
        sparcml.launch(lambda comm: read_svmlight(pipe, comm), 2)


@pytest.mark.parametrize("ranks", [1, 4])
def test_directories_and_several_files(tmp_path, ranks):
    shards = tmp_path / "shards"
    shards.mkdir()
    written(shards / "part-0", TEXT)
    written(shards / "part-1", "")
    written(shards / "part-2.gz", gzip.compress(b"3 2:1\n"))
    written(shards / "_SUCCESS", "nothing to read")
    written(shards / ".part-0.crc", "nor here")
    last = written(tmp_path / "last", "4 2:2")  # no newline: the next file begins again
    parts = sparcml.launch(lambda c: read_svmlight([shards, str(last), last], c), ranks)
    labels = [float(y) for part in parts for y in part.labels]
    assert labels == [1.0, -1.0, 2.5, 1.0, -0.5, 3.0, 4.0, 4.0]


def test_where_indices_start(tmp_path):
    zero = written(tmp_path / "zero", "1 3:1\n" * 9 + "1 0:1\n")
    one = written(tmp_path / "one", "1 1:1 3:1\n")
    assert read_svmlight(zero).indices.tolist() == [3] * 9 + [0]
    parts = sparcml.launch(lambda comm: read_svmlight(zero, comm), 4)
    assert parts[0].indices.tolist()[0] == 3  # what the last rank saw holds for all
    assert {(part.features, part.zero_based) for part in parts} == {(4, True)}
    assert read_svmlight(one).zero_based is False
    assert read_svmlight(one).indices.tolist() == [0, 2]
    assert read_svmlight(one, zero_based=True).indices.tolist() == [1, 3]
    assert read_svmlight(one, zero_based=True).features == 4
    assert read_svmlight(one, zero_based=True).zero_based is True
    assert read_svmlight(one, zero_based=False, features=8).features == 8
    huge = written(tmp_path / "huge", f"1 {2**32 - 1}:1\n")
    assert read_svmlight(huge).indices.tolist() == [2**32 - 2]
    assert read_svmlight(huge).features == 2**32 - 1


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from("reEfg"))
def test_numbers_equal_python(tmp_path_factory, number, how):
    text = repr(number) if how == "r" else f"{number:+.17{how}}"
    path = written(tmp_path_factory.mktemp("n") / "a", f"{text} 1:{text}\n")
    rows = read_svmlight(path, dtype=np.float64)
    assert rows.values.tolist() == [float(text)]
    assert rows.labels.tolist() == [float(text)]
    assert np.signbit(rows.values[0]) == np.signbit(float(text))


def test_unusual_numbers_are_exact(tmp_path):
    rng = np.random.default_rng(0)
    texts = [
        f"{'-' * rng.integers(2)}{rng.integers(10 ** rng.integers(1, 18))}"
        f".{rng.integers(10 ** rng.integers(1, 9))}e{rng.integers(-30, 30)}"
        for _ in range(5000)
    ]
    texts += ["1e-400", "0e999999999999", "4.9e-324", "1.7976931348623157e308", "9" * 30]
    texts += [
        "1" + "0" * 400 + "e-800",
        "1" + "0" * 400 + "e-300",
        "1e-99999999999999999999",
    ]
    texts += ["0." + "0" * 400 + "1", "0" * 50 + "1.5", "9007199254740993", "1e22", "1e23"]
    texts += [
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "2.2250738585072011e-308",
    ]
    for number in rng.random(200) * 10.0 ** rng.integers(-300, 300, 200):
        above = np.nextafter(number, np.inf)
        middle = (Fraction(float(number)) + Fraction(float(above))) / 2
        digits, shift = middle.numerator, middle.denominator.bit_length() - 1
        tie = digits * 5**shift
        texts += [f"{tie}e-{shift}", f"{tie}{'0' * 800}1e-{shift + 801}", f"{number:.25e}"]
    path = written(tmp_path / "a", "".join(f"0 1:{text}\n" for text in texts))
    rows = read_svmlight(path, dtype=np.float64)
    assert rows.values.tolist() == [float(text) for text in texts]


BAD = {
    "x,y,z": (
        1,
        "the label 'x,y,z' is not a number; the file must be LIBSVM text, and looks like CSV",
    ),
    "1,2 1:1": (1, "the label '1,2' is not a number"),
    "nan 1:1": (1, "the label 'nan' is not finite"),
    "1:1 2:1": (1, "the label '1:1' is not a number"),
    "1 1:1 3": (7, "no colon and value after index '3'"),
    "1 1:1 3 4:1": (7, "no colon and value after index '3'"),
    "1 a:1": (3, "expected index:value, found 'a:1'"),
    "1 -1:1": (3, "expected index:value, found '-1:1'"),
    "1 qid:x 1:1": (3, "expected index:value, found 'qid:x'"),
    "1 1:": (5, "the value '' is not a number"),
    "1 1:x": (5, "the value 'x' is not a number"),
    "1 1:1x": (5, "the value '1x' is not a number"),
    "1 1:2:3": (5, "the value '2:3' is not a number"),
    "1 1:1e": (5, "the value '1e' is not a number"),
    "1 1:-inf": (5, "the value '-inf' is not finite"),
    "1 1:NaN": (5, "the value 'NaN' is not finite"),
    "1 1:1e39": (5, "the value '1e39' is too large"),
    "1 1:1e999": (5, "the value '1e999' is too large"),
    "1 1:1e99999999999999999999": (5, "the value '1e99999999999999999999' is too large"),
    "1 1:0.001e313": (5, "the value '0.001e313' is too large"),
    "1 3:1 2:1": (7, "index 2 after 3: they must ascend"),
    "1 3:1 3:1": (7, "index 3 is there twice"),
    "1 4294967296:1": (3, "index 4294967296 is above the largest, 4294967295"),
    "1 99999999999999999999999:1": (3, "index 99999999999999999999999 is above"),
    "1 \xff": (3, "expected index:value, found"),
}


@pytest.mark.parametrize("line", BAD)
@pytest.mark.parametrize("ranks", [1, 3])
def test_malformed_line_is_named_on_all_ranks(tmp_path, line, ranks):
    column, what = BAD[line]
    path = written(tmp_path / "bad", "1 1:1\n\n" * 20 + line + "\n" + "1 1:1\n" * 5)
    messages = sparcml.launch(lambda comm: refusal(path, comm), ranks)
    assert f"bad, line 41, column {column}: {what}" in messages[0]
    assert set(messages) == {messages[0]}
    assert messages[0].startswith("rank 2: " if ranks == 3 else str(path))


def refusal(path, comm=None, **settings):
    with pytest.raises(DataError) as caught:
        read_svmlight(path, comm, **settings)
    return str(caught.value)


@pytest.mark.parametrize("ranks", [1, 3])
def test_indices_out_of_bounds(tmp_path, ranks):
    one = written(tmp_path / "one", "1 1:1\n1 2:1 5:1\n")
    zero = written(tmp_path / "zero", "1 1:1 5:1\n1 0:1\n")

    def refusals(comm):
        return (
            refusal(one, comm, features=4),
            refusal(zero, comm, zero_based=False),
            refusal(zero, comm, features=5),
            refusal(zero, comm, features=5, zero_based=True),
        )

    messages = sparcml.launch(refusals, ranks)
    assert set(messages) == {messages[0]}
    assert "one, line 2, column 7: index 5 is above the largest, 4" in messages[0][0]
    assert "zero, line 2, column 3: index 0, but they start at 1" in messages[0][1]
    assert "zero, line 1, column 7: index 5 is above the largest, 4" in messages[0][2]
    assert "zero, line 1, column 7: index 5 is above the largest, 4" in messages[0][3]


@pytest.mark.parametrize("ranks", [1, 2])
def test_nothing_to_read(tmp_path, ranks):
    empty = written(tmp_path / "empty", "")
    blank = written(tmp_path / "blank", "# nothing\n\n")
    (tmp_path / "folder").mkdir()

    def refusals(comm):
        return [
            refusal(empty, comm),
            refusal([blank, empty], comm),
            refusal(tmp_path / "folder", comm),
            refusal([], comm),
        ]

    messages = sparcml.launch(refusals, ranks)[0]
    assert "empty: no rows" in messages[0]
    assert "blank, " in messages[1]
    assert "folder: no files in this folder" in messages[2]
    assert "no files were given" in messages[3]


def test_file_missing_on_one_rank(tmp_path):
    here, other = written(tmp_path / "a", TEXT), written(tmp_path / "b", TEXT + TEXT)

    def body(comm, paths):
        try:
            read_svmlight(paths[comm.rank], comm)
        except (OSError, DataError) as error:
            return f"{type(error).__name__}: {error}"

    gone = [here, tmp_path / "gone", here]
    messages = sparcml.launch(lambda comm: body(comm, gone), 3)
    assert messages[0] == messages[2]
    assert messages[0].startswith("DataError: rank 1: FileNotFoundError")
    assert messages[1].startswith("FileNotFoundError")
    messages = sparcml.launch(lambda comm: body(comm, [here, here, other]), 3)
    assert all("rank 2 sees other files than rank 0" in str(text) for text in messages)


def test_bad_arguments(tmp_path):
    path = written(tmp_path / "a", TEXT)
    with pytest.raises(ValueError, match="zero_based must be"):
        read_svmlight(path, zero_based="maybe")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="features must be 1 to"):
        read_svmlight(path, features=0)
    with pytest.raises(ValueError, match="float32 or float64, got int32"):
        read_svmlight(path, dtype=np.int32)
    with pytest.raises(FileNotFoundError):
        read_svmlight(tmp_path / "nowhere")


def plain(text):
    """Parse text leniently, in the form of WANT."""
    lines = [line.partition("#")[0].split() for line in text.split("\n")]
    words = sorted({line[0] for line in lines if line and line[0][0].isalpha()})
    return [
        (
            float(words.index(line[0]) if words else line[0]),
            {int(i): float(v) for i, v in (t.split(":") for t in line[1:])},
        )
        for line in lines
        if line
    ]


TOKENS = [
    "1",
    "-2.5",
    "0",
    ":",
    "1:2",
    "3:.5",
    "12:1e3",
    " ",
    "\t",
    "\n",
    "\r\n",
    "#",
    "e",
    "x",
]


@given(st.lists(st.sampled_from(TOKENS), max_size=30))
def test_any_text_is_refused_or_read_as_python_would(tmp_path_factory, tokens):
    path = written(tmp_path_factory.mktemp("f") / "a", "".join(tokens))
    try:
        rows = read_svmlight(path, zero_based=True, dtype=np.float64)
    except DataError:
        return
    assert listed(rows) == plain("".join(tokens))


@given(st.binary(max_size=100))
def test_any_bytes_are_refused_or_read(tmp_path_factory, data):
    path = written(tmp_path_factory.mktemp("b") / "a", b"1 1:1\n" + data)
    try:
        messages = f"{path}, row 0 is {read_svmlight(path).labels[0]}"
    except DataError as error:
        messages = str(error)
    assert messages.startswith((f"{path}, line ", f"{path}, row 0 is 1.0"))


def test_text_must_be_padded():
    parser = svmlight.parser_of(1, 9, np.float32)
    with pytest.raises(ValueError, match="8 bytes of padding"):
        parser.feed(np.zeros(10, np.uint8), 3, 3)
    assert parser.feed(np.frombuffer(b"1 2:1\n2 3" + bytes(8), np.uint8), 9, 9) == 6
    assert (parser.rows, parser.lines, parser.smallest, parser.largest) == (1, 1, 2, 2)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="no such file here")
def test_read_error_names_the_file():
    with pytest.raises(OSError, match="/proc/self/mem"):
        read_svmlight("/proc/self/mem")
