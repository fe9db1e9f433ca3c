"""Tests of reading LIBSVM text on several threads: the same rows and errors for any number."""

import gzip

import numpy as np
import pytest

import sparcml
from sparcml.kernels.threads import using_threads
from sparcml.linear import DataError, _core, read_svmlight, write_svmlight
from sparcml.linear.data import svmlight, synthetic

THREADS = (1, 2, 3, 5)
PART = 1 << 16  # bytes for each further thread
UNUSUAL = (  # lines that are no rows, rows without entries, and parts of rows
    "# a comment: 1:2\n",
    "\n",
    " \t\r\n",
    "2.5\n",
    "1 qid:7 3:1e-3 9:.5 # 4:5\r\n",
)


def lines(count, labels=("1", "-1", "0.5")):
    """Return rows of different lengths, and unusual lines among them."""
    rng = np.random.default_rng(0)
    found = []
    for n in range(count):
        indices = np.cumsum(rng.integers(1, 900, rng.integers(0, 40)))
        pairs = (
            f"{i}:{v:.4g}" for i, v in zip(indices, rng.random(indices.size), strict=True)
        )
        found.append(" ".join([labels[n % len(labels)], *pairs]) + "\n")
        if n % 50 == 0 and labels[0] == "1":
            found.append(UNUSUAL[n // 50 % len(UNUSUAL)])
    return found


LINES = lines(2000)


def arrays(rows):
    found = [rows.indptr, rows.indices, rows.values, rows.labels]
    return found, (rows.features, rows.label_names, rows.zero_based)


def read_on_all(path, *arguments, **settings):
    """Read with 1, 2, 3 and 5 threads; all rows must be equal."""
    results = []
    for count in THREADS:
        with using_threads(count):
            results.append(arrays(read_svmlight(path, *arguments, **settings)))
    wanted, others = results[0], results[1:]
    for found, about in others:
        assert about == wanted[1]
        for x, y in zip(found, wanted[0], strict=True):
            np.testing.assert_array_equal(x, y)
            assert x.dtype == y.dtype
    return wanted


def refusals(path, comm=None, **settings):
    """Return the message, which must be the same with 1, 2, 3 and 5 threads."""
    messages = set()
    for count in THREADS:
        with using_threads(count), pytest.raises(DataError) as caught:
            read_svmlight(path, comm, **settings)
        messages.add(str(caught.value))
    (message,) = messages
    return message


@pytest.fixture
def path(tmp_path):
    return tmp_path / "text"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("block", [1 << 22, 5 * PART + 1234, 2 * PART])
def test_rows_have_the_same_bits(path, dtype, block, monkeypatch):
    monkeypatch.setattr(svmlight, "BLOCK", block)
    path.write_text("".join(LINES))
    assert path.stat().st_size > 5 * PART
    (indptr, *_), _ = read_on_all(path, dtype=dtype)
    rows = [line for line in LINES if line.split("#")[0].strip()]
    assert indptr.size == len(rows) + 1


@pytest.mark.parametrize("make", [synthetic.url_like, synthetic.webspam_like])
def test_written_rows_are_read(path, make):
    rows = make(300)
    write_svmlight(path, rows)
    found, _ = read_on_all(path, features=rows.features)
    for x, y in zip(found, arrays(rows)[0], strict=True):
        np.testing.assert_array_equal(x, y)


def test_each_rank_reads_its_part(path):
    path.write_text("".join(LINES))
    whole = read_svmlight(path)
    for count in THREADS:
        with using_threads(count):
            parts = sparcml.launch(lambda comm: read_svmlight(path, comm), 2)
        for name in ("indices", "values", "labels"):
            found = np.concatenate([getattr(part, name) for part in parts])
            np.testing.assert_array_equal(found, getattr(whole, name))


def test_compressed_text(path):
    path.write_bytes(gzip.compress("".join(LINES).encode(), 1))
    read_on_all(path)


def test_long_lines_leave_parts_empty(path):
    """A line longer than the parts, first, in the middle and last."""
    entries = " ".join(f"{i}:1" for i in range(1, 60_000))
    for text in (f"1 {entries}\n", "1 2:3\n" * 30_000):
        for other in (f"-1 {entries}\n", "-1 5:6\n" * 30_000):
            path.write_text(text + other + text[:-1])
            read_on_all(path)
    path.write_text(
        "1 2:3\n" * 20_000 + "#" + "x" * 500_000 + "\n" + "\n" * 100_000 + "1 1:1"
    )
    assert read_on_all(path)[0][3].size == 20_001


def test_words_are_numbered_in_the_order_of_rows(path):
    """Parts know different words, and each has some of the others."""
    labels = [f"w{n * n % 977}" for n in range(2000)]
    path.write_text("".join(lines(2000, labels)))
    found, (_, names, _) = read_on_all(path)
    assert [names[int(label)] for label in found[3]] == labels


BAD = [
    "x,y,z",
    "1 1:1 3",
    "1 3:1 2:1",
    "1 3:1 3:1",
    "1 1:nan",
    "word 1:1",
    "1 4294967296:1",
]


@pytest.mark.parametrize("line", BAD)
def test_malformed_lines_are_named_alike(path, line):
    """Lines of any part of a chunk, and a second one behind it, which is not reached."""
    for at in (0, 1, 300, 700, 1100, 1500, len(LINES) - 1):
        bad = [*LINES[:at], line + "\n", *LINES[at:], "also bad\n"]
        path.write_text("".join(bad))
        message = refusals(path)
        assert f"line {at + 1}, " in message or (at == 0 and line == BAD[5])


def test_a_malformed_line_in_a_later_chunk(path, monkeypatch):
    monkeypatch.setattr(svmlight, "BLOCK", 3 * PART)
    for at in (900, 1700):
        path.write_text("".join([*LINES[:at], "1 2:x\n", *LINES[at:]]))
        assert f"line {at + 1}, column 5: the value 'x'" in refusals(path)


def test_numbers_after_words(path):
    words = lines(2000, ["spam", "ham"])
    for at in (400, 1900):
        path.write_text("".join([*words[:at], "1 1:1\n", *words[at:]]))
        assert f"line {at + 1}, column 1: the label '1' is a number" in refusals(path)


def test_too_many_words(path):
    path.write_text("".join(f"word{n} 1:1\n" for n in range(65_540)))
    assert "line 65537, column 1: more than 65536 labels" in refusals(path)


def test_index_bounds_are_those_of_all_parts(path):
    for at in (0, 1000, len(LINES)):
        path.write_text("".join([*LINES[:at], "1 0:1\n", *LINES[at:]]))
        assert read_on_all(path)[1][2]  # zero-based
        text = refusals(path, zero_based=False)
        assert f"line {at + 1}, column 3: index 0, but they start at 1" in text
    path.write_text("".join([*LINES[:1200], "1 99999:1\n", *LINES[1200:]]))
    assert "line 1201, column 3: index 99999 is above" in refusals(path, features=99_998)


def test_lines_that_start_before_stop():
    """The parser reads these and no others, for any number of threads."""
    text = "".join(LINES).encode()
    buffer = np.frombuffer(text + b" " * _core.SVMLIGHT_PADDING, np.uint8)
    start = text.index(b"\n", 5 * PART) + 1
    for stop in (start - 1, start, start + 1):
        results = set()
        for count in THREADS:
            with using_threads(count):
                parser = svmlight.parser_of(0, 10**6, np.float32)
                parsed = parser.feed(buffer, len(text), stop)
                results.add((parsed, parser.lines, parser.rows, parser.largest))
        assert len(results) == 1
        ((parsed, *_),) = results
        assert parsed == (start if stop <= start else text.index(b"\n", start) + 1)
