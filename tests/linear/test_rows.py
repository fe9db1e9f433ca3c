"""Tests of `Rows`: conversion, slices and checks."""

import numpy as np
import pytest
from scipy import sparse

from sparcml.linear import DataError, Rows

DENSE = np.array([[0, 2.0, 0, 1], [0, 0, 0, 0], [3, 0, 0, -4]])
Y = np.array([1.0, -1.0, 2.5])


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csc_array, list])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_of(kind, dtype):
    rows = Rows.of(kind(DENSE.astype(dtype)), Y)
    assert rows.indptr.dtype == np.int64
    assert rows.indices.dtype == np.uint32
    assert rows.values.dtype == dtype
    assert rows.indptr.tolist() == [0, 2, 2, 4]
    assert rows.indices.tolist() == [1, 3, 0, 3]
    assert rows.values.tolist() == [2, 1, 3, -4]
    assert rows.labels.tolist() == Y.tolist()
    assert (rows.features, rows.first, rows.total, len(rows), rows.nnz) == (4, 0, 3, 3, 4)
    assert np.array_equal(rows.to_scipy().toarray(), DENSE)


def test_csr_is_not_copied():
    matrix = sparse.csr_matrix(DENSE.astype(np.float32))
    rows = Rows.of(matrix, Y)
    assert np.shares_memory(rows.indices, matrix.indices)
    assert np.shares_memory(rows.values, matrix.data)
    assert np.shares_memory(rows.labels, Y)


def test_unsorted_and_duplicate_entries_are_fixed_in_a_copy():
    parts = ([5.0, 1.0, 2.0, 7.0], [3, 1, 1, 0], [0, 3, 4])
    matrix = sparse.csr_matrix(parts, (2, 4))
    matrix.has_sorted_indices = True  # not so
    rows = Rows.of(matrix)
    assert rows.indices.tolist() == [1, 3, 0]
    assert rows.values.tolist() == [3, 5, 7]
    assert matrix.indices.tolist() == parts[1]


def test_row_may_start_at_the_last_column_of_the_previous_one():
    matrix = sparse.csr_matrix(([1.0, 1, 1], [2, 2, 1], [0, 1, 1, 2, 3]), (4, 3))
    rows = Rows.of(matrix)
    assert np.shares_memory(rows.indices, matrix.indices)


def test_take_and_part():
    rows = Rows.of(DENSE, Y, features=9, weights=[1, 2, 3])
    last = rows.take(1, 3)
    assert (last.first, last.total, len(last), last.nnz, last.features) == (1, 3, 2, 2, 9)
    assert last.indptr.tolist() == [0, 0, 2]
    assert last.weights is not None
    assert last.weights.tolist() == [2, 3]
    assert np.shares_memory(last.values, rows.values)
    again = last.take(1, 2)
    assert (again.first, again.indices.tolist()) == (2, [0, 3])
    parts = [rows.part(rank, 5) for rank in range(5)]
    assert sum(len(part) for part in parts) == 3
    assert [part.first for part in parts] == [0, 0, 1, 1, 2]
    assert all(part.total == 3 for part in parts)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nonfinite_values(bad):
    spoiled = DENSE.copy()
    spoiled[2, 3] = bad
    with pytest.raises(
        DataError, match=f"row 2, column 3: the value must be finite, got {bad}"
    ):
        Rows.of(spoiled, Y)
    with pytest.raises(DataError, match=f"row 1: the label must be finite, got {bad}"):
        Rows.of(DENSE, [1, bad, 1])
    with pytest.raises(ValueError, match=f"row 0: the weight must be finite, got {bad}"):
        Rows.of(DENSE, Y, weights=[bad, 1, 1])


def test_bad_arguments():
    with pytest.raises(ValueError, match="y must have shape"):
        Rows.of(DENSE, [1, 2])
    with pytest.raises(ValueError, match="features must be >= 4, the columns of X, got 3"):
        Rows.of(DENSE, Y, features=3)
    with pytest.raises(ValueError, match="two dimensions, got 1"):
        Rows.of(Y, Y)
    rows = Rows.of(DENSE, Y)
    with pytest.raises(ValueError, match="within 0 to 3, got 2 and 4"):
        rows.take(2, 4)
    with pytest.raises(ValueError, match="within 0 to 2"):
        Rows(rows.indptr, rows.indices, rows.values, Y, 4, total=2)


def test_empty_and_wide_rows():
    none = Rows.of(np.empty((0, 7)), [])
    assert (len(none), none.features, none.nnz) == (0, 7, 0)
    wide = sparse.csr_matrix(([1.0], np.array([2**32 - 2]), [0, 1]), (1, 2**32 - 1))
    assert Rows.of(wide).indices.tolist() == [2**32 - 2]
    assert Rows.of(wide).to_scipy().indices.tolist() == [2**32 - 2]
