"""Tests of the statistics of synthetic rows."""

import numpy as np
import pytest

import sparcml
from sparcml.linear import read_svmlight, write_svmlight
from sparcml.linear.data.synthetic import FLIPS, URL, WEBSPAM, Recipe

SMALL = Recipe(5000, 20.0, 0.5, 5.0, 0.4, 8, exponent=1.1, block=64)
PUBLISHED = [
    pytest.param(URL, 277_058_644 / 2_396_130, 4096, id="url"),
    pytest.param(WEBSPAM, 1_304_697_446 / 350_000, 256, id="webspam"),
]


def same(a, b):
    arrays = ("indptr", "indices", "values", "labels")
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in arrays)


def test_row_does_not_depend_on_the_number_of_rows():
    whole = SMALL.rows(300, seed=4)
    assert same(SMALL.rows(130, seed=4), whole.take(0, 130))
    assert same(next(SMALL.stream(300, 4, start=70)), whole.take(70, 128))
    assert not same(SMALL.rows(300, seed=5), whole)
    parts = sparcml.launch(lambda comm: SMALL.rows(300, 4, comm), 4)
    for rank, part in enumerate(parts):
        assert same(part, whole.part(rank, 4))
        assert (part.first, part.total, part.features) == (75 * rank, 300, 5000)
    assert len(SMALL.rows(0)) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("recipe", "entries", "count"), PUBLISHED)
def test_published_means(recipe, entries, count):
    times, expected = recipe._lengths
    draws = recipe.draws(np.random.default_rng(0), 100_000)
    assert abs(np.interp(draws, times, expected).mean() / entries - 1) < 0.01
    rows = recipe.rows(count, seed=1)
    assert rows.features == recipe.features
    assert abs((rows.labels > 0).mean() - recipe.positive) < 0.1
    # Given how often was drawn for each row, all else is known.
    drawn = np.concatenate(
        [
            recipe.draws(np.random.default_rng([1, number]), recipe.block)
            for number in range(count // recipe.block)
        ]
    )
    want = np.interp(drawn, times, expected).sum()
    assert abs(rows.nnz - want) < 5 * np.sqrt(want)
    many, p = recipe.popularity()
    distinct = (many * -np.expm1(-drawn.sum() * p)).sum()
    assert abs(np.unique(rows.indices).size - distinct) < 5 * np.sqrt(distinct)
    # The most frequent features are those that are expected, at the columns they were given.
    for rank in (0, 1, 10, 100):
        here = (rows.indices == recipe._columns[rank]).sum()
        chances = -np.expm1(-drawn * p[rank])
        assert abs(here - chances.sum()) < 5 * np.sqrt((chances * (1 - chances)).sum()) + 1


def test_values():
    url, webspam = URL.rows(100), WEBSPAM.rows(20)
    real = np.isin(url.indices, URL._columns[:64])
    assert (url.values[~real] == 1).all()
    assert real.any()
    assert ((url.values[real] > 0) & (url.values[real] <= 1)).all()
    assert np.unique(url.values[real]).size > 100
    squares = np.add.reduceat(np.square(webspam.values), webspam.indptr[:-1])
    assert np.allclose(squares, 1, atol=1e-5)
    assert (webspam.values > 0).all()


def test_labels_follow_a_linear_model():
    rows = SMALL.rows(2000, seed=9)
    dense = rows.to_scipy()
    weights = np.zeros(SMALL.features)
    weights[SMALL._columns] = SMALL._truth[: SMALL.features]
    right = np.sign(dense @ weights - SMALL._middle) == rows.labels
    assert 0.92 < right.mean() < 1 - FLIPS / 2


def test_stream_is_written_as_text(tmp_path):
    path = tmp_path / "a.svm"
    write_svmlight(path, SMALL.stream(200, seed=3))
    assert same(read_svmlight(path, features=5000), SMALL.rows(200, seed=3))
