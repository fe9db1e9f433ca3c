"""The training runs that methods are judged by: gradients, shards, and what they report."""

import zlib

import numpy as np
import pytest
from workloads import WORKLOADS, data, train
from workloads.train import Workload

import sparcml

needs_data = pytest.mark.skipif(
    not data.place().is_dir(), reason="no data beside the project"
)


def quadratic(rows=64, size=64):
    """A small problem of the same shape as the others: the mean of rows is sought."""
    goals = np.random.default_rng(0).standard_normal((rows, size, 2)).astype(np.float32)
    best = goals.mean(axis=0)
    return Workload(
        name="quadratic",
        about="a mean",
        rate=0.2,
        steps=60,
        batch=8,
        rows=lambda: rows,
        start=lambda seed: {"x": np.full((size, 2), seed, np.float32)},
        gradient=lambda w, chosen: {"x": w["x"] - goals[chosen].mean(axis=0)},
        judge=lambda w: (float(np.mean((w["x"] - best) ** 2)), 1.0),
    )


def test_a_run_says_what_it_did():
    run = train(quadratic(), sparcml.Dense(), 3, ranks=4)
    assert [step for step, _ in run.curve] == [10, 20, 30, 40, 50, 60]
    assert run.loss < 0.05 < run.curve[0][1]
    assert run.sent >= 60 * 4 * 2 * 3 / 4 * 64 * 2 * 4  # a dense allreduce sends no less
    again = train(quadratic(), sparcml.Dense(), 3, ranks=4)
    assert again.curve == run.curve


def test_other_seeds_start_and_end_elsewhere():
    one, two = (
        train(quadratic(), sparcml.Dense(), seed, ranks=2, steps=12) for seed in (1, 2)
    )
    assert one.curve[0] != two.curve[0]


def test_the_share_of_the_norm_is_reported():
    method = sparcml.Compressed(sparcml.TopK(0.1), dense_below=0)
    run = train(quadratic(), method, 1, ranks=2, steps=12)
    assert 0.1 < run.share < 1
    full = train(quadratic(), sparcml.Dense(), 1, ranks=2, steps=12)
    assert full.share == 1


def test_missing_data_are_said_to_be_missing(monkeypatch, tmp_path):
    monkeypatch.setenv("SPARCML_DATA", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError, match=r"no data at .*none.*set SPARCML_DATA"):
        data.folder()


def test_mails_are_hashed_as_words_and_grams():
    grams = list(data._grams("buy it now"))
    assert grams[:4] == ["buy", "it", "now", "buy it now"]
    assert grams[4:] == ["buy", "uy ", "y i", " it", "it ", "t n", " no", "now"]
    found = data._hashed("buy it now")
    assert found.dtype == np.int32
    assert np.all(np.diff(found) > 0)
    assert len(found) == len(set(grams))
    for text in ("", "ab", "buy it now", "buy it now\u00a0!"):
        crcs = {zlib.crc32(gram.encode()) % data.COLUMNS for gram in data._grams(text)}
        assert data._hashed(text).tolist() == sorted(crcs)


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize("name", WORKLOADS)
def test_gradients_are_those_of_the_loss(name):
    work = WORKLOADS[name]
    rng = np.random.default_rng(0)
    rows = np.arange(work.rows())
    w = {
        n: v + rng.normal(0, 0.01, v.shape).astype(np.float32)
        for n, v in work.start(1).items()
    }
    slopes = work.gradient(w, rows)
    direction = {n: s / np.sqrt(np.sum(s**2) + 1e-30) for n, s in slopes.items()}
    step = 1e-2
    up, down = (
        work.judge({n: v + sign * step * direction[n] for n, v in w.items()})[0]
        for sign in (1, -1)
    )
    want = sum(float(np.sum(slopes[n] * direction[n])) for n in slopes)
    assert (up - down) / (2 * step) == pytest.approx(want, rel=0.02)


@needs_data
@pytest.mark.slow
def test_a_linear_model_learns_spam():
    run = train(WORKLOADS["spam"], sparcml.Dense(), 1, steps=60, ranks=2)
    assert run.accuracy > 0.9
