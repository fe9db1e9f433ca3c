"""Solvers on several threads: the same bits for any number of threads."""

import numpy as np
import pytest

import sparcml
from sparcml.linear import SGD, Constant, Penalty, _core, loops
from sparcml.linear.data import synthetic
from sparcml.linear.data.column_index import ColumnBitmap
from tests.kernels.thread_counts import assert_equal, on_all


@pytest.fixture(scope="module", params=["webspam_like", "url_like"])
def rows(request):
    return getattr(synthetic, request.param)(400 if "web" in request.param else 4000)


@pytest.mark.parametrize(
    "settings",
    [{}, {"momentum": 0.9}, {"adaptive": 1.0}, {"penalty": Penalty(l1=1e-4, l2=1e-4)}],
    ids=str,
)
def test_gradients_and_steps_have_the_same_bits(rows, settings):
    solver = SGD(batch_size=200, epochs=1, learning_rate=Constant(0.1), **settings)

    def work():
        state = solver.run(sparcml.world(), rows)
        return [np.array(array) for array in state.arrays().values()]

    assert_equal(on_all(work))


def test_margins_have_the_same_bits(rows):
    weights = np.random.default_rng(0).standard_normal(rows.features).astype(np.float32)
    csr = loops.Csr(rows.indptr, rows.indices, rows.values, rows.labels)
    assert_equal(on_all(lambda: [loops.margins(csr, weights)]))


def test_column_index_has_the_same_bits(rows):
    """Threads set bits of the same words; an invalid row is the first one for any number."""
    broken = rows.indices.copy()
    for row in (len(rows) - 3, len(rows) // 2):
        at = rows.indptr[row]
        broken[at], broken[at + 1] = broken[at + 1], broken[at]

    def work():
        bitmap = ColumnBitmap(rows.features)
        bitmap.add(rows.indices)
        bitmap.count()
        first = _core.first_invalid_row(rows.indptr, broken, rows.features)
        return [bitmap.columns(), bitmap.positions(rows.indices), first]

    results = on_all(work)
    assert_equal(results)
    columns, positions, first = results[0]
    np.testing.assert_array_equal(columns, np.unique(rows.indices))
    np.testing.assert_array_equal(columns[positions], rows.indices)
    assert first == len(rows) // 2
