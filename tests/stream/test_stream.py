"""Making streams, refusing what is none, and what they hand out."""

from typing import Any

import numpy as np
import pytest

import sparcml
from sparcml import Stream


def test_a_stream_shows_what_it_has():
    s = Stream(10, [1, 4, 9], np.array([1, 2, 3], np.float64))
    assert (s.size, s.nnz, s.is_dense, s.dtype) == (10, 3, False, np.dtype(np.float64))
    assert s.nbytes == 3 * (4 + 8)
    assert s.indices.dtype == np.uint32
    np.testing.assert_array_equal(s.to_dense(), [0, 1, 0, 0, 2, 0, 0, 0, 0, 3])
    assert repr(s) == "Stream(size=10, nnz=3, float64)"


def test_blocks_are_rows():
    s = Stream(12, [0, 2], np.arange(8, dtype=np.float32), block=4)
    assert (s.nnz, s.blocks, s.values.shape) == (2, 3, (2, 4))
    np.testing.assert_array_equal(s.to_dense(), [0, 1, 2, 3, 0, 0, 0, 0, 4, 5, 6, 7])
    same = Stream(12, [0, 2], np.arange(8, dtype=np.float32).reshape(2, 4), block=4)
    np.testing.assert_array_equal(same.to_dense(), s.to_dense())


@pytest.mark.parametrize(
    ("size", "indices", "values", "block", "error", "why"),
    [
        (10, [3, 1], [1, 2], 1, ValueError, "got 1 after 3 at position 1.*from_pairs"),
        (10, [3, 3], [1, 2], 1, ValueError, "ascending, got 3 twice.*from_pairs"),
        (10, [3, 10], [1, 2], 1, ValueError, r"\[0, 10\), got 10"),
        (10, np.array([3, 10], np.uint32), [1, 2], 1, ValueError, r"\[0, 10\), got 10"),
        (10, [-1, 3], [1, 2], 1, ValueError, r"\[0, 10\), got -1"),
        (10, [2**32 + 1], [1], 1, ValueError, r"\[0, 10\), got 4294967297"),
        (10, [0.5, 3], [1, 2], 1, TypeError, "integers, got float64"),
        (10, [[1, 2]], [1, 2], 1, ValueError, "one-dimensional"),
        (10, [1, 2], [1], 1, ValueError, "1 for each of 2 indices, got 1"),
        (12, [1, 2], [1, 2], 4, ValueError, "4 for each of 2 indices, got 2"),
        (10, [1], [1, 2, 3, 4], 4, ValueError, "multiple of block=4, got 10"),
        (-1, [], [], 1, ValueError, "size .*>= 0, got -1"),
        (2.5, [], [], 1, TypeError, "size .*got 2.5"),
        (10, [], [], 0, ValueError, "block .*got 0"),
        (2**32, [], [], 1, ValueError, r"at most 2\^32 - 1 blocks, got 4294967296"),
        (10, [1], np.array([1], "u4"), 1, TypeError, r"got uint32.*astype\(np.int64\)"),
        (10, [1], np.array([1], np.float16), 1, TypeError, "got float16"),
        (10, [1], np.array([1j]), 1, TypeError, "got complex128"),
    ],
)  # fmt: skip
def test_what_is_no_stream(size, indices, values, block, error, why):
    with pytest.raises(error, match=why):
        Stream(size, indices, values, block=block)


def test_the_largest_stream():
    s = Stream(2**32 - 1, [2**32 - 2], [1.0])
    assert s.indices[0] == 2**32 - 2
    assert (s + s).values[0] == 2
    assert Stream((2**32 - 1) * 8, [0], np.ones(8, np.float32), block=8).size > 2**34


def test_pairs_in_any_order_are_sorted_and_summed():
    s = Stream.from_pairs(10, [7, 2, 7, 0], np.array([1, 2, 3, 4], np.float32))
    np.testing.assert_array_equal(s.indices, [0, 2, 7])
    np.testing.assert_array_equal(s.values, [4, 2, 4])
    rows = Stream.from_pairs(
        6, [2, 0, 2], np.array([[1, 2], [3, 4], [5, 6]], np.float32), block=2
    )
    np.testing.assert_array_equal(rows.to_dense(), [3, 4, 0, 0, 6, 8])
    assert Stream.from_pairs(5, [], []).nnz == 0
    with pytest.raises(ValueError, match=r"\[0, 10\), got 12"):
        Stream.from_pairs(10, np.array([12, 1], np.uint32), [1, 2])


def test_what_a_stream_hands_out_is_read_only():
    mine = np.array([1, 2], np.float32)
    s = Stream(10, np.array([1, 2], np.uint32), mine)
    for array in (s.indices, s.values, (s + s).values, Stream.from_dense(mine).values):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 9
    assert mine.flags.writeable
    s.to_dense()[0] = 9  # a copy: the caller's own


@pytest.mark.parametrize(
    "awkward",
    [np.arange(20, dtype=np.float32)[::2], np.arange(10).astype(">f4"),
     np.asfortranarray(np.arange(10, dtype=np.float32).reshape(2, 5))],
    ids=["strided", "big-endian", "fortran"],
)  # fmt: skip
def test_awkward_arrays_are_copied(awkward):
    s = Stream.from_dense(awkward)
    np.testing.assert_array_equal(s.to_dense(), awkward.reshape(-1))
    t = Stream(50, np.arange(10), awkward)
    np.testing.assert_array_equal(t.values, awkward.reshape(-1))
    assert t.dtype == np.float32


def test_adding_never_changes_an_operand():
    for other in (Stream(4, [0], [5.0]), Stream.from_dense(np.ones(4, np.float32))):
        for mine in (Stream(4, [1], [2.0]), Stream.from_dense(np.full(4, 3, np.float32))):
            before = mine.to_dense(), other.to_dense()
            mine + other
            np.testing.assert_array_equal((mine.to_dense(), other.to_dense()), before)


def test_minus_zero_is_nothing_and_nan_is_something():
    s = Stream.from_dense(
        np.array([0.0, -0.0, np.nan, np.inf, 1e-45] + [0] * 9, np.float32)
    )
    np.testing.assert_array_equal(s.indices, [2, 3, 4])


def test_sizes_of_numpy_do_not_overflow():
    size: Any = np.int32(10**9)
    s = Stream(size, np.arange(4), np.ones(4, np.float32))
    assert s.size * 8 == 8 * 10**9
    assert not (s + s).is_dense


@pytest.mark.parametrize("values", [[1 + 2j], ["1.5"], [None], [True]])
def test_only_numbers_are_values(values):
    with pytest.raises(TypeError, match="values must be float32, float64, int32"):
        Stream(10, [1], values)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integers_are_values(dtype):
    s = Stream(10, [1, 7], np.array([3, np.iinfo(dtype).max], dtype))
    assert s.dtype == dtype
    assert (s + s).values.tolist() == [6, -2]  # wraps as in NumPy
    np.testing.assert_array_equal(Stream.from_dense(s.to_dense()).values, s.values)
    full = np.full(9, np.iinfo(dtype).min, dtype)
    assert Stream.from_dense(full, fill=-np.inf).nnz == 0
    assert Stream.from_dense(full, fill=-np.inf).to_dense().tolist() == full.tolist()
    with pytest.raises(ValueError, match="fill must be a value of int"):
        Stream.from_dense(full, fill=0.5)


def test_what_is_absent_is_added_too():
    fives = Stream.from_dense(np.full(10, 5, np.float32), fill=5.0)
    np.testing.assert_array_equal(
        (fives + Stream(10, [0], [1.0])).to_dense(), [6] + [5] * 9
    )


@pytest.mark.parametrize(
    ("dtype", "remedy"),
    [
        (np.float16, r"astype\(np.float32\)$"),
        (np.int16, r"astype\(np.int64\)$"),
        (np.uint32, r"astype\(np.int64\)$"),
        (np.uint64, r"astype\(np.int64\), which is exact below 2"),
        (np.complex128, r"view\(np.float64\)"),
        (object, "got object$"),
    ],
)
def test_the_remedy_for_a_dtype_loses_nothing_it_does_not_name(dtype, remedy):
    with pytest.raises(TypeError, match=remedy):
        Stream.from_dense(np.array([1, 2], dtype))


def test_masked_arrays_are_refused():
    masked = np.ma.masked_array(np.ones(3, np.float32), [True, False, False])
    for use in (
        Stream.from_dense,
        lambda x: Stream(3, [0, 1, 2], x),
        sparcml.Half().encode,
        lambda x: sparcml.launch(lambda comm: comm.allreduce(x), 1),
        lambda x: sparcml.launch(lambda comm: comm.allreduce(np.ones(3, "f4"), out=x), 1),
    ):
        with pytest.raises(TypeError, match=r"masked array.*\.filled\(0\)"):
            use(masked)
