"""Places among the numbers in use are those that a search in them finds."""

import numpy as np
import pytest

from sparcml.kernels import _core
from sparcml.kernels.column_index import INACTIVE, ColumnBitmap


@pytest.mark.parametrize("size", [1, 63, 64, 65, 1000, 100_000])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
def test_places_are_those_of_a_search(isa, size, share):
    rng = np.random.default_rng(size)
    numbers = np.flatnonzero(rng.random(size) < share).astype(np.uint32)
    used = ColumnBitmap(size)
    used.add(np.repeat(rng.permutation(numbers), 2))
    assert used.count() == numbers.size
    np.testing.assert_array_equal(used.columns(), numbers)
    asked = rng.integers(0, size, 500).astype(np.uint32)
    places = np.searchsorted(numbers, asked).astype(np.uint32)
    places[~np.isin(asked, numbers)] = INACTIVE
    np.testing.assert_array_equal(used.positions(asked), places)


def test_numbers_beyond_the_size_are_refused():
    used = ColumnBitmap(64)
    with pytest.raises(ValueError, match="a bit for every column"):
        used.add(np.array([64], np.uint32))
    with pytest.raises(ValueError, match="a bit for every column"):
        used.positions(np.array([3, 64], np.uint32))


def test_arrays_must_fit():
    plane, numbers = np.zeros(2, np.uint64), np.zeros(3, np.uint32)
    with pytest.raises(ValueError, match="one count per word"):
        _core.count_columns(plane, np.zeros(1, np.uint32))
    with pytest.raises(ValueError, match="one position per column"):
        _core.column_positions(
            numbers, plane, np.zeros(2, np.uint32), np.zeros(2, np.uint32)
        )
