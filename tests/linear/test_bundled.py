"""Tests of the packed row format and the bundled mails."""

import numpy as np
import pytest

import sparcml
from sparcml.linear import DataError, Rows, spam
from sparcml.linear.data.bundled import pack, unpack


def ones(dense, labels, features=None):
    found = Rows.of(np.asarray(dense, np.float32), labels, features)
    lengths = np.diff(found.indptr)
    found.values[:] = np.repeat(1 / np.sqrt(np.maximum(lengths, 1)), lengths)
    return found


@pytest.mark.parametrize(
    "rows",
    [
        ones(np.random.default_rng(0).random((40, 90)) < 0.2, np.arange(-20, 20)),
        ones(np.random.default_rng(0).random((7, 300)) < 0.02, [1] * 7, 2**32 - 1),
        ones(np.ones((3, 4)), [1, -1, 1]),
        ones(np.zeros((3, 4)), [1, -1, 1]),
        ones(np.zeros((0, 4)), []),
    ],
    ids=["many", "wide", "full", "empty", "none"],
)
def test_round_trip(rows):
    code = pack(rows)
    back = unpack(code)
    for name in ("indptr", "indices", "values", "labels"):
        assert np.array_equal(getattr(back, name), getattr(rows, name))
    assert back.features == rows.features
    for at in range(0, len(code), 5):
        spoiled = bytearray(code)
        spoiled[at] ^= 4
        with pytest.raises(DataError):
            unpack(bytes(spoiled))
    for size in (0, 10, len(code) - 1):
        with pytest.raises(DataError):
            unpack(code[:size])


def test_labels_must_fit_in_a_byte():
    with pytest.raises(ValueError, match="integers from -128 to 127"):
        pack(ones(np.ones((1, 1)), [0.5]))


def test_spam():
    train, held_out = spam()
    assert (len(train), len(held_out)) == (2419, 604)
    assert (train.total, held_out.total, held_out.first) == (2419, 604, 0)
    assert train.features == held_out.features == 16_609_143
    assert 1500 < train.nnz / len(train) < 1800
    assert set(train.labels) == {-1.0, 1.0}
    assert 0.25 < (train.labels > 0).mean() < 0.36
    assert 0.25 < (held_out.labels > 0).mean() < 0.36
    squares = np.bincount(
        np.repeat(np.arange(len(train)), np.diff(train.indptr)), np.square(train.values)
    )
    assert np.allclose(squares, 1, atol=1e-4)


def test_ranks_partition_the_mails():
    parts = sparcml.launch(spam, 3)
    whole = spam()
    for kind in (0, 1):
        shares = [part[kind] for part in parts]
        assert np.array_equal(
            np.concatenate([share.indices for share in shares]), whole[kind].indices
        )
        assert [share.first for share in shares] == list(
            np.cumsum([0] + [len(share) for share in shares[:-1]])
        )
        assert {share.total for share in shares} == {len(whole[kind])}
