"""Quantizers on parameters of unlike size, and on mostly zero ones such as embeddings."""

from __future__ import annotations

import numpy as np
import pytest

import sparcml
from sparcml import QSGD, Compressed, OneBit, TernGrad

SHAPE = (32, 8)  # two such parameters share a bucket of 512
TRIALS = 30


def vector(rank, shape=SHAPE):
    return np.random.default_rng(rank).standard_normal(shape).astype(np.float32)


def relative_variance(errors, exact):
    return float(np.mean(np.sum(np.square(errors), axis=(1, 2))) / np.sum(np.square(exact)))


@pytest.mark.parametrize(("scale", "shared"), [(0.1, 2.0), (0.01, 49.0), (0.001, 383.0)])
def test_a_small_layer_does_not_suffer_from_a_large_one(scale, shared):
    """In one bucket with a large layer, its relative variance would be `shared`."""
    quantize = QSGD(4, bucket=512)
    both = np.concatenate((vector(0).ravel(), scale * vector(1).ravel()))
    small = both[both.size // 2 :].reshape(SHAPE)
    codes = (quantize.encode(both, seed) for seed in range(TRIALS))
    halves = [quantize.decode(code)[small.size :].reshape(SHAPE) - small for code in codes]
    assert relative_variance(halves, small) == pytest.approx(shared, rel=0.6)

    def work(comm):
        errors, g = [], {"large": vector(comm.rank), "small": scale * vector(comm.rank + 2)}
        exact = scale * (vector(2) + vector(3)) / 2
        for seed in range(TRIALS):
            method = Compressed(
                quantize=quantize, error_feedback=False, dense_below=10, seed=seed
            )
            mean, _ = method.aggregate(comm, g, method.init(dict.fromkeys(g, SHAPE)))
            errors.append(mean["small"] - exact)
        return relative_variance(errors, exact)

    for ours in sparcml.launch(work, 2):
        assert ours < 0.15


@pytest.mark.parametrize("zeros", [0.9, 0.99])
def test_onebit_keeps_the_size_of_touched_rows(zeros):
    """By columns, zeros are averaged with the positive values: 5 % and 0.5 % remain."""
    rows, width = 1000, 128
    table = vector(1, (rows, width))
    table[np.random.default_rng(2).random(rows) < zeros] = 0

    def share(decoded):
        positive = table > 0
        return decoded[positive].mean() / table[positive].mean()

    by_columns = OneBit()
    published = share(by_columns.decode(by_columns.encode(table)))
    assert published < 1.2 * (1 - zeros)

    def work(comm):
        method = Compressed(quantize=OneBit())
        mean, _ = method.aggregate(comm, {"w": table}, method.init({"w": table.shape}))
        assert not mean["w"][~table.any(axis=1)].any()  # untouched rows stay untouched
        return share(mean["w"])

    for ours in sparcml.launch(work, 2):
        assert ours == pytest.approx(1, abs=0.05)


def test_the_variance_of_ternary_values():
    v = vector(5, 4000)
    coder = TernGrad(clip=None)
    errors = [coder.decode(coder.encode(v, seed)) - v for seed in range(200)]
    measured = np.mean(np.sum(np.square(errors), axis=1)) / (v @ v)
    expected = (np.abs(v).max() * np.abs(v).sum() - v @ v) / (v @ v)
    assert measured == pytest.approx(expected, rel=0.02)
