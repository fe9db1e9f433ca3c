"""Tests of feature hashing against a definition in Python."""

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparcml.linear import Hashing

TEXTS = [
    "the cat  sat\non the mat the cat sat",
    "",
    " \t",
    "x",
    "naïve café 中文字 😀",
    "ab",
]


def expected(text, how):
    """{column: value}."""
    words = text.split()
    grams = [
        " ".join(words[i : i + n]) for n in how.words for i in range(len(words) - n + 1)
    ]
    grams += [text[i : i + n] for n in how.characters for i in range(len(text) - n + 1)]
    found: dict[int, float] = {}
    for gram in grams:
        column = zlib.crc32(gram.encode("utf-8", "surrogatepass")) % how.features
        found[column] = found.get(column, 0) + 1 if how.counts else 1
    length = sum(v * v for v in found.values()) ** 0.5 if how.unit else 1
    return {column: np.float32(np.float32(v) / length) for column, v in found.items()}


HOW = [
    Hashing(16_609_143, words=(1, 3), characters=(3,)),
    Hashing(1000, words=(1, 2), counts=True, unit=False),
    Hashing(7, words=(), characters=(1, 2, 5), counts=True),
    Hashing(1),
    Hashing(2**32 - 1, words=(2,), characters=(4,)),
]


@pytest.mark.parametrize("how", HOW)
def test_rows(how):
    rows = how.rows(TEXTS, range(len(TEXTS)))
    assert rows.features == how.features
    assert rows.labels.tolist() == list(range(len(TEXTS)))
    for i, text in enumerate(TEXTS):
        part = rows.take(i, i + 1)
        want = expected(text, how)
        assert part.indices.tolist() == sorted(want)
        assert np.allclose(part.values, [want[j] for j in sorted(want)], rtol=1e-6, atol=0)


@given(st.text())
def test_any_text(text):
    rows = HOW[0].rows([text])
    assert rows.indices.tolist() == sorted(expected(text, HOW[0]))
    assert rows.nnz == 0 or np.isclose(np.square(rows.values).sum(), 1, atol=1e-5)


def test_no_texts():
    rows = HOW[0].rows([])
    assert (len(rows), rows.nnz, rows.values.dtype.name) == (0, 0, "float32")


def test_bad_arguments():
    with pytest.raises(ValueError, match="features must be 1 to 4294967295, got 0"):
        Hashing(0)
    with pytest.raises(ValueError, match="lengths of n-grams must be 1 or more"):
        Hashing(10, words=(0,))
    with pytest.raises(ValueError, match="lengths of n-grams must be 1 or more"):
        Hashing(10, words=())
