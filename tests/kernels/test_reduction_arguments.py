"""Bad arguments raise and leave every array as it was."""

import numpy as np
import pytest

from sparcml import kernels
from sparcml.kernels import _core, reduction

from .reduction_data import Pair

I = np.array([1, 4, 7], np.uint32)  # noqa: E741
V = np.array([1, 2, 3], np.float32)


def out(size: int) -> Pair:
    return np.full(size, 9, np.uint32), np.full(size, 9, np.float32)


@pytest.mark.parametrize(
    ("op", "av", "block", "room"),
    [
        (4, V, 1, 6),
        (-1, V, 1, 6),
        (0, V[:2], 1, 6),
        (0, V, 0, 6),
        (0, V, 2, 6),
        (0, V, 1, 5),
    ],
)
def test_merge_checks_sizes(op, av, block, room):
    oi, ov = out(room)
    with pytest.raises(ValueError, match="must"):
        _core.merge(op, I, av, I, V, block, oi, ov)
    with pytest.raises(ValueError, match="must"):
        _core.merge_many(op, [I, I], [av, V], block, oi, ov)
    assert (oi == 9).all()
    assert (ov == 9).all()


@pytest.mark.parametrize("wrong", [[4, 1, 7], [1, 1, 7], [1, 4, 8], [1, 4, 2**32 - 1]])
def test_scatter_writes_nowhere_else(wrong):
    dense = np.zeros(8, np.float32)
    indices = np.array(wrong, np.uint32)
    with pytest.raises(ValueError, match="indices must ascend"):
        reduction.scatter("sum", dense, indices, V)
    with pytest.raises(ValueError, match="indices must ascend"):
        kernels.scatter_assign(dense, indices, V)
    assert not dense.any()


@pytest.mark.parametrize(("values", "block"), [(V[:2], 1), (V, 2), (V, 0), (V, 3)])
def test_scatter_checks_sizes(values, block):
    dense = np.zeros(8, np.float32)
    with pytest.raises(ValueError, match="must"):
        reduction.scatter("sum", dense, I, values, block)
    with pytest.raises(ValueError, match="must"):
        kernels.scatter_assign(dense, I, values, block)
    assert not dense.any()


def test_merge_refuses_unsorted_indices():
    for wrong in (I[::-1].copy(), np.array([1, 1, 2], np.uint32)):
        with pytest.raises(ValueError, match="indices must ascend"):
            reduction.merge("sum", wrong, V, I, V)
        with pytest.raises(ValueError, match="indices must ascend"):
            reduction.merge("sum", I, V, wrong, V)
        with pytest.raises(ValueError, match="indices must ascend"):
            reduction.merge_many("sum", [(I, V), (wrong, V)])


def test_compact_checks_sizes():
    oi, ov = out(2)
    for block, limit in ((0, 2), (2, 2), (1, 3)):
        with pytest.raises(ValueError, match="must"):
            _core.compact(V, 0.0, block, False, limit, oi, ov)
    with pytest.raises(ValueError, match="must"):
        reduction.compact(V, block=0)
    with pytest.raises(ValueError, match="must"):
        reduction.count_nonfill(V, block=2)
    assert (oi == 9).all()
    assert (ov == 9).all()


def test_other_types_are_refused_not_converted():
    with pytest.raises(TypeError):
        _core.merge(0, I.astype(np.int64), V, I, V, 1, *out(6))
    with pytest.raises(TypeError):
        _core.merge_many(0, [I, I], [V, V.astype(np.float64)], 1, *out(6))
    with pytest.raises(TypeError):
        _core.scatter(0, np.zeros(16, np.float32)[::2], I, V, 1)
    with pytest.raises(ValueError, match="parts must not be empty"):
        reduction.merge_many("sum", [])
    with pytest.raises(ValueError, match="same size"):
        reduction.combine_dense("sum", V, V[:2])
