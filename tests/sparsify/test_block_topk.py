"""Blocks: whole blocks by norm."""

import numpy as np

import sparcml

from .vectors import gradient, norm2


def test_the_blocks_of_largest_norm():
    v = gradient(1, 640)
    stream = sparcml.BlockTopK(k=3, block=64).select(v)
    norms = np.square(v.reshape(10, 64).astype(np.float64)).sum(axis=1)
    assert stream.block == 64
    assert stream.indices.tolist() == sorted(np.argsort(-norms)[:3].tolist())
    np.testing.assert_array_equal(stream.values, v.reshape(10, 64)[stream.indices])


def test_contraction():
    v = gradient(2, 10_000, np.float64) ** 3
    for ratio in (0.01, 0.1, 1.0):
        stream = sparcml.BlockTopK(ratio, block=10).select(v)
        assert norm2(v - stream.to_dense()) <= (1 - ratio) * norm2(v) * (1 + 1e-12)


def test_a_last_block_that_is_shorter():
    v = np.zeros(70, np.float32)
    v[66:] = 5
    v[3] = 1
    sparsifier = sparcml.BlockTopK(k=2, block=64)
    assert sparsifier.count(70) is None
    stream = sparsifier.select(v)
    assert stream.block == 1
    assert stream.indices.tolist() == list(range(70))
    assert sparcml.BlockTopK(k=1, block=64).select(v).indices.tolist() == list(
        range(64, 70)
    )


def test_ties_and_what_is_not_a_number():
    assert sparcml.BlockTopK(k=2, block=2).select(np.ones(8)).indices.tolist() == [0, 1]
    v = np.ones(8, np.float32)
    v[5] = np.nan
    assert sparcml.BlockTopK(k=1, block=2).select(v).indices.tolist() == [2]
