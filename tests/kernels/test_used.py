"""Places among the numbers in use are those that a search in them finds."""

import numpy as np
import pytest

from sparcml.kernels import _core
from sparcml.kernels.column_index import UNUSED, Used


@pytest.mark.parametrize("size", [1, 63, 64, 65, 1000, 100_000])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
def test_places_are_those_of_a_search(isa, size, share):
    rng = np.random.default_rng(size)
    numbers = np.flatnonzero(rng.random(size) < share).astype(np.uint32)
    used = Used(size)
    used.add(np.repeat(rng.permutation(numbers), 2))
    assert used.close() == numbers.size
    np.testing.assert_array_equal(used.numbers(), numbers)
    asked = rng.integers(0, size, 500).astype(np.uint32)
    places = np.searchsorted(numbers, asked).astype(np.uint32)
    places[~np.isin(asked, numbers)] = UNUSED
    np.testing.assert_array_equal(used.places(asked), places)


def test_numbers_beyond_the_size_are_refused():
    used = Used(64)
    with pytest.raises(ValueError, match="a bit for every number"):
        used.add(np.array([64], np.uint32))
    with pytest.raises(ValueError, match="a bit for every number"):
        used.places(np.array([3, 64], np.uint32))


def test_arrays_must_fit():
    plane, numbers = np.zeros(2, np.uint64), np.zeros(3, np.uint32)
    with pytest.raises(ValueError, match="one count a word"):
        _core.used_before(plane, np.zeros(1, np.uint32))
    with pytest.raises(ValueError, match="one place a number"):
        _core.used_renumber(numbers, plane, np.zeros(2, np.uint32), np.zeros(2, np.uint32))
