"""Tests of writing LIBSVM text: it reads back to the same bits."""

import numpy as np
import pytest
from scipy import sparse

from sparcml.linear import Rows, read_svmlight, write_svmlight
from sparcml.linear.data import svmlight

AWKWARD = [
    0.1,
    1 / 3,
    1e-45,
    3.4028235e38,
    -0.0,
    16777217.0,
    5e-324,
    1.7976931348623157e308,
]


@pytest.mark.parametrize("zero_based", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_round_trip(tmp_path, zero_based, dtype, monkeypatch):
    monkeypatch.setattr(svmlight, "BLOCK", 100)  # many blocks
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((50, 9)).astype(dtype) * (rng.random((50, 9)) < 0.5)
    rows = Rows.of(dense, rng.standard_normal(50))
    few = AWKWARD[:6] if dtype == np.float32 else AWKWARD
    rows.values[: len(few)] = few
    rows.labels[: len(AWKWARD)] = AWKWARD
    path = tmp_path / "a.svm"
    write_svmlight(
        path, (rows.take(i, i + 10) for i in range(0, 50, 10)), zero_based=zero_based
    )
    back = read_svmlight(path, features=9, zero_based=zero_based, dtype=dtype)
    for name in ("indptr", "indices", "values", "labels"):
        assert getattr(back, name).tobytes() == getattr(rows, name).tobytes()
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.svm"]


def test_text(tmp_path):
    path = tmp_path / "a.svm"
    write_svmlight(path, Rows.of([[0, 1.5, 1], [0, 0, 0]], [1, -1]))
    assert path.read_text() == "1 2:1.5 3:1\n-1\n"
    write_svmlight(path, Rows.of(np.empty((0, 3))))
    assert path.read_text() == ""


def test_error_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.svm"
    rows = Rows.of([[1.0]], [1])
    write_svmlight(path, rows)

    def broken():
        yield rows
        raise RuntimeError("no more rows")

    with pytest.raises(RuntimeError, match="no more rows"):
        write_svmlight(path, broken())
    assert path.read_text() == "1 1:1\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.svm"]


@pytest.mark.parametrize("kind", ["csr_array", "ndarray", "list", "float"])
def test_other_types_are_refused_by_name(tmp_path, kind):
    X = np.ones((2, 3))
    given = {"csr_array": sparse.csr_array(X), "ndarray": X, "list": [[1.0]], "float": 1.0}
    with pytest.raises(TypeError, match=rf"got {kind}; .* with Rows.of\(X, y\)"):
        write_svmlight(tmp_path / "a.svm", given[kind])
    assert not list(tmp_path.iterdir())
