"""Quantizers on parameters of unlike size, and on mostly zero ones such as embeddings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import sparcml
from sparcml import QSGD, Compressed, Half, OneBit, TernGrad, TopK

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


def small_gradients(rank):
    """A matrix, and vectors of very different size."""
    draw = np.random.default_rng(rank)
    return {
        "matrix": draw.standard_normal((40, 40)).astype(np.float32),
        "bias": (127 * draw.choice([-1, 0, 1], 100)).astype(np.float32),
        "scale": np.full(30, 0.25, np.float32),
        "other": draw.standard_normal(60).astype(np.float32),
    }


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_small_gradients_can_be_quantized(ranks):
    gradients = [small_gradients(rank) for rank in range(ranks)]
    shapes = {name: g.shape for name, g in gradients[0].items()}
    plain = Compressed(quantize=QSGD(2), error_feedback=False, dense_below=100)
    method = replace(plain, small=QSGD(8, bucket=128))

    def work(comm):
        sent = []
        for m in (plain, method):
            before = comm.stats.bytes
            mean, _ = m.aggregate(comm, small_gradients(comm.rank), m.init(shapes))
            sent.append(comm.stats.bytes - before)
        exact = {n: np.mean([g[n] for g in gradients], axis=0) for n in shapes}
        for name in ("bias", "scale", "other"):
            # Each is divided by at most twice its root mean square; then none exceeds 8 here.
            size = max(np.sqrt(np.mean(np.square(g[name]))) for g in gradients)
            assert np.abs(mean[name] - exact[name]).max() <= 2 * (2 * size * 8 / 127)
        again, _ = method.aggregate(comm, small_gradients(comm.rank), method.init(shapes))
        assert all(np.array_equal(again[name], mean[name]) for name in shapes)
        return mean, sent

    results = sparcml.launch(work, ranks)
    for mean, (before, after) in results:
        for name, array in mean.items():
            np.testing.assert_array_equal(array, results[0][0][name])
        assert ranks == 1 or after < before


def test_sparse_gradients_stay_exact_beside_quantized_small_ones():
    method = Compressed(
        TopK(0.1), QSGD(4), dense_below=100, small=QSGD(8, bucket=128), momentum=0.0
    )

    def work(comm):
        rows = sparcml.Stream(40, [comm.rank, 5], np.array([1 / 3, 1 / 7], np.float32))
        gradient = {"rows": rows, "bias": np.ones(20, np.float32)}
        state = method.init({"rows": (40,), "bias": (20,)})
        mean, _ = method.aggregate(comm, gradient, state)
        expected = np.zeros(40, np.float32)
        expected[[0, 1]] = np.float32(1 / 3) / 2
        expected[5] = np.float32(1 / 7)
        np.testing.assert_array_equal(mean["rows"].to_dense(), expected)

    sparcml.launch(work, 2)


def test_biased_quantizers_of_small_gradients_are_refused():
    with pytest.raises(
        ValueError, match=r"small must be an unbiased quantizer or Half, got"
    ):
        Compressed(small=OneBit())
    with pytest.raises(TypeError, match="small must not be a sparsifier"):
        Compressed(small=TopK(0.1))  # type: ignore[arg-type]
    assert Compressed(small=Half()).small == Half()
