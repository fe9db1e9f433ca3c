"""The cases of addition, the dense switch at exactly delta, and joining ranges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparcml import Stream
from sparcml.stream import (
    add,
    add_many,
    densify_if_smaller,
    identity,
    join,
    range_offsets,
    split,
)

from ..laws import COMBINE, filled, sparse

OPS = ("sum", "min", "max", "prod")


def held_dense(x, fill):
    return Stream.unchecked(x.size, None, filled(x, fill), x.block, fill)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("block", [1, 3])
@pytest.mark.parametrize(
    "forms", ["sparse+sparse", "sparse+dense", "dense+sparse", "dense+dense"]
)
def test_every_case_gives_the_dense_result(op, dtype, block, forms):
    rng = np.random.default_rng(1)
    a, b = (sparse(rng, 300 * block, n, dtype, block) for n in (20, 33))
    fill = identity(op, np.dtype(dtype))
    want = COMBINE[op](filled(a, fill), filled(b, fill))
    x, y = (
        held_dense(s, fill) if form == "dense" else s
        for s, form in zip((a, b), forms.split("+"), strict=True)
    )
    total = add(x, y, op)
    np.testing.assert_array_equal(total.to_dense(), want)
    assert total.is_dense == ("dense" in forms)
    assert total.fill == fill


@pytest.mark.parametrize(("dtype", "delta"), [(np.float32, 500), (np.float64, 667)])
def test_the_switch_is_at_delta(dtype, delta):
    """N v / (c + v): half for float32, two thirds for float64."""
    ones = np.ones(1000, dtype)
    below = Stream(1000, np.arange(delta - 1), ones[: delta - 1])
    at = Stream(1000, np.arange(delta), ones[:delta])
    assert not densify_if_smaller(below).is_dense
    assert densify_if_smaller(at).is_dense
    left, right = Stream(1000, np.arange(300), ones[:300]), Stream(1000, [], ones[:0])
    for n in (delta - 301, delta - 300):
        right = Stream(1000, np.arange(300, 300 + n), ones[:n])
        assert (left + right).is_dense == (300 + n >= delta)


def test_the_switch_looks_at_the_union_not_at_the_sum_of_sizes():
    x = Stream(1000, np.arange(400), np.ones(400, np.float32))
    assert not (x + x).is_dense


def test_cancelled_entries_stay():
    x = Stream(100, [3], [2.0])
    y = Stream(100, [3], [-2.0])
    assert (x + y).nnz == 1
    assert (x + y).values[0] == 0


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("counts", [(5, 9, 0, 40), (90, 10, 200), (0, 0)])
def test_many_at_once_is_the_left_fold_bit_for_bit(op, counts):
    rng = np.random.default_rng(2)
    parts = []
    for n in counts:
        x = sparse(rng, 400, n)
        parts.append(Stream(400, x.indices, (x.values / 3).astype(np.float32)))
    folded = parts[0]
    for part in parts[1:]:
        folded = add(folded, part, op)
    many = add_many(parts, op)
    assert many.to_dense().tobytes() == folded.to_dense().tobytes() or op == "sum"
    np.testing.assert_array_equal(many.to_dense() + 0.0, folded.to_dense() + 0.0)


@pytest.mark.parametrize("change", ["size", "block", "dtype"])
def test_unlike_streams_cannot_be_added(change):
    x = Stream(8, [1], np.ones(2, np.float32), block=2)
    other = {
        "size": Stream(10, [1], np.ones(2, np.float32), block=2),
        "block": Stream(8, [1], np.ones(1, np.float32)),
        "dtype": Stream(8, [1], np.ones(2, np.float64), block=2),
    }[change]
    with pytest.raises(ValueError, match=f"same {change}"):
        x + other


@given(st.integers(0, 50), st.integers(1, 9), st.integers(0, 2**32), st.integers(1, 3))
def test_split_and_join_are_opposites(blocks, parts, seed, block):
    rng = np.random.default_rng(seed)
    x = sparse(rng, blocks * block, rng.integers(0, blocks + 1), block=block)
    edges = range_offsets(blocks, parts)
    pieces = split(x, edges)
    assert [p.blocks for p in pieces] == np.diff(edges).tolist()
    joined = join(pieces, edges)
    np.testing.assert_array_equal(joined.to_dense(), x.to_dense())
    pieces = split(Stream.unchecked(x.size, None, x.to_dense(), block), edges)
    np.testing.assert_array_equal(join(pieces, edges).to_dense(), x.to_dense())
