"""Reductions on several threads: the same bits for any number."""

import threading

import numpy as np
import pytest

import sparcml
from sparcml import kernels
from sparcml.kernels import _core, reduction
from sparcml.kernels.threads import using_threads
from sparcml.operations import OPS
from tests.kernels.reference import reduction as reference

from .reduction_data import (
    LAST,
    Pair,
    entries,
    guarded,
    intact,
    overlaps,
    same_bits,
    same_entries,
    values,
)
from .thread_counts import on_all

pytestmark = pytest.mark.usefixtures("isa")
over_ops = pytest.mark.parametrize("op", OPS)
over_dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
over_blocks = pytest.mark.parametrize("block", [1, 2, 5, 64])
WORTH = 1 << 17  # values that wake further threads
DENSE_PART = 1 << 18


def merge(op: str, a: Pair, b: Pair, block: int) -> Pair:
    return reduction.merge(op, a[0], a[1], b[0], b[1], block)


def same_on_all(work):
    """Compare entries, and return them."""
    first, *others = on_all(work)
    for other in others:
        same_entries(other, first)
    return first


@over_dtypes
@over_blocks
def test_merge_has_the_same_bits(dtype, block):
    rng = np.random.default_rng(block)
    nnz = WORTH // block
    for size in (2 * nnz, LAST + 1):
        a, b = (entries(rng, n, size, dtype, block) for n in (nnz, nnz // 2))
        for op in OPS:
            same_on_all(lambda op=op, a=a, b=b: merge(op, a, b, block))


@pytest.mark.parametrize("kind", overlaps(0))
@pytest.mark.parametrize("block", [1, 3])
def test_merge_with_every_overlap(kind, block):
    rng = np.random.default_rng(block)
    ai, bi = overlaps(120_000)[kind]
    av, bv = (values(rng, i.size * block, np.float32) for i in (ai, bi))
    result = same_on_all(lambda: reduction.merge("sum", ai, av, bi, bv, block))
    if block == 1:
        same_entries(result, reference.merge("sum", ai, av, bi, bv))


@pytest.mark.parametrize("block", [1, 4])
def test_merge_around_the_threshold(block):
    rng = np.random.default_rng(4)
    for nnz in WORTH // block + np.arange(-2, 4):  # the rounds leave one or two for the end
        index = np.arange(nnz, dtype=np.uint32)
        a, b = (
            (i, values(rng, i.size * block, np.float32))
            for i in (index[::2].copy(), index[1::2].copy())
        )
        result = same_on_all(lambda a=a, b=b: merge("sum", a, b, block))
        np.testing.assert_array_equal(result[0], index)


def many(name, rng, dtype, block):
    """Return streams with about 200,000 values in total."""
    total = 200_000 // block
    if name == "alike":
        return [entries(rng, total // 8, 2 * total, dtype, block) for _ in range(8)]
    if name == "short":
        return [entries(rng, total // 150, LAST + 1, dtype, block) for _ in range(150)]
    if name == "unequal":
        sizes, range_ = (total, 3, 0, total // 50), 5 * total
        return [entries(rng, n, range_, dtype, block) for n in sizes]
    if name == "same indices":
        index = entries(rng, total // 20, total, dtype)[0]
        return [(index, values(rng, index.size * block, dtype, 0.01)) for _ in range(20)]
    starts = np.arange(4, dtype=np.uint32) * total  # each in a range of its own
    index = np.arange(total // 4, dtype=np.uint32)
    return [(index + s, values(rng, index.size * block, dtype)) for s in starts[::-1]]


@over_dtypes
@over_blocks
@pytest.mark.parametrize("name", ["alike", "short", "unequal", "same indices", "apart"])
def test_merge_many_has_the_same_bits(name, dtype, block):
    parts = many(name, np.random.default_rng(block), dtype, block)
    for op in OPS:
        result = same_on_all(lambda op=op: reduction.merge_many(op, parts, block))
        if block == 1 and op == "sum":
            same_entries(result, reference.merge_many(op, parts))


@pytest.mark.parametrize("block", [100_000, 3000])
def test_blocks_that_exceed_the_scratch(block):
    rng = np.random.default_rng(5)
    parts = [entries(rng, 600_000 // block, 30, np.float64, block) for _ in range(3)]
    result = same_on_all(lambda: reduction.merge_many("sum", parts, block))
    same_entries(result, reference.merge_many("sum", parts, block))
    same_on_all(lambda: reduction.merge("sum", *parts[0], *parts[1], block))


@over_blocks
def test_nothing_is_written_outside(block):
    rng = np.random.default_rng(6)
    parts = [entries(rng, WORTH // block, 9 * WORTH, np.float32, block) for _ in range(3)]
    nnz = sum(i.size for i, _ in parts)
    oi, ov = guarded(nnz, np.uint32), guarded(nnz * block, np.float32)
    (ai, av), (bi, bv), _ = parts
    indices, floats = [i for i, _ in parts], [v for _, v in parts]
    short = ai.size + bi.size
    for count in (2, 5):
        with using_threads(count):
            _core.merge_many(0, indices, floats, block, oi, ov)
            pair = oi[:short].copy(), ov[: short * block].copy()
            _core.merge(0, ai, av, bi, bv, block, *pair)
        assert intact(oi)
        assert intact(ov)


@over_ops
@over_dtypes
def test_dense_has_the_same_bits(op, dtype):
    rng = np.random.default_rng(7)
    for size in (2 * DENSE_PART - 1, 2 * DENSE_PART, 3 * DENSE_PART + 77):
        a, b = values(rng, size, dtype), values(rng, size, dtype)
        first, *others = on_all(
            lambda a=a, b=b: reduction.combine_dense(op, a, b, a.copy())
        )
        for other in others:
            same_bits(other, first)
        same_bits(first, reference.combine_dense(op, a, b))


def test_the_first_index_that_does_not_ascend():
    size = 6 * DENSE_PART
    index = np.arange(size, dtype=np.uint32)
    borders = [size * part // count for count in (2, 3, 5) for part in range(1, count)]
    assert on_all(lambda: kernels.ascending_prefix(index, size)) == [size] * 4
    for at in sorted(
        {1, size - 1, *borders, *(b - 1 for b in borders), *(b + 1 for b in borders)}
    ):
        wrong = index.copy()
        wrong[at] = wrong[at - 1]
        wrong[-1] = 0
        assert on_all(lambda w=wrong: kernels.ascending_prefix(w, size)) == [at] * 4
        assert on_all(lambda at=at: kernels.ascending_prefix(index, at)) == [at] * 4


def test_callers_on_several_threads():
    rng = np.random.default_rng(8)
    a, b = (entries(rng, WORTH, 9 * WORTH, np.float32) for _ in range(2))
    pair, both = reduction.merge("sum", *a, *b), reduction.merge_many("sum", [a, b])
    found = []

    def work():
        for _ in range(10):
            found.append((reduction.merge("sum", *a, *b), pair))
            found.append((reduction.merge_many("sum", [a, b]), both))

    with using_threads(3):
        callers = [threading.Thread(target=work) for _ in range(3)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
    assert len(found) == 60
    for result, wanted in found:
        same_entries(result, wanted)


@pytest.mark.parametrize("algorithm", ["ssar_recursive_double", "ssar_split_allgather"])
def test_allreduce_has_the_same_bits(algorithm):
    rng = np.random.default_rng(9)
    size = 12_000_000
    inputs = [
        sparcml.Stream(size, *entries(rng, 300_000, size, np.float32)) for _ in range(3)
    ]

    def work():
        results = sparcml.launch(
            lambda comm: comm.allreduce(inputs[comm.rank], algorithm=algorithm), 3
        )
        assert not results[0].is_dense
        return results[0].indices, results[0].values

    same_on_all(work)
