"""Tests of the shuffle, which is the same for any number of ranks."""

import numpy as np
import pytest

from sparcml.linear.data.shuffle import batches, permuted_positions


@pytest.mark.parametrize("total", [1, 2, 3, 5, 16, 17, 1000, 70_001])
def test_positions_are_a_permutation(total):
    where = permuted_positions(np.arange(total), total, 7, 3)
    np.testing.assert_array_equal(np.sort(where), np.arange(total))


def test_orders_are_uncorrelated():
    rows = np.arange(10_000)
    orders = [
        permuted_positions(rows, 10_000, seed, epoch) for seed in (0, 1) for epoch in (0, 1)
    ]
    for i, a in enumerate(orders):
        for b in orders[:i]:
            assert (a == b).mean() < 0.001
            assert abs(np.corrcoef(a, b)[0, 1]) < 0.05
        assert abs(np.corrcoef(a[1:], a[:-1])[0, 1]) < 0.05
        assert abs(np.corrcoef(a, rows)[0, 1]) < 0.05


@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("total", [0, 1, 40, 97])
@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_batches_do_not_depend_on_the_number_of_ranks(seed, total, ranks):
    whole, edges = batches(0, total, total, 10, seed, 2)
    shares = [(r * total // ranks, (r + 1) * total // ranks) for r in range(ranks)]
    found = [batches(a, b - a, total, 10, seed, 2) for a, b in shares]
    for t in range(len(edges) - 1):
        want = whole[edges[t] : edges[t + 1]]
        parts = [
            a + order[starts[t] : starts[t + 1]]
            for (a, _), (order, starts) in zip(shares, found, strict=True)
        ]
        np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.sort(want))
        assert len(want) == min(10, total - 10 * t)
