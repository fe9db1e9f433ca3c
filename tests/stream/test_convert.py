"""To and from NumPy, scipy and torch."""

import numpy as np
import pytest

import sparcml
from sparcml import Stream
from sparcml.stream.arrays import DTYPES

scipy_sparse = pytest.importorskip("scipy.sparse")
torch = pytest.importorskip("torch")

DENSE = np.zeros(50, np.float32)
DENSE[[3, 4, 40]] = [1, -2, 5]


@pytest.mark.parametrize("make", ["csr_array", "csc_array", "coo_array", "csr_matrix"])
@pytest.mark.parametrize("column", [False, True])
def test_scipy_rows_and_columns(make, column):
    row = DENSE[:, None] if column else DENSE[None]
    s = Stream.from_dense(getattr(scipy_sparse, make)(row))
    assert s.nnz == 3
    np.testing.assert_array_equal(s.to_dense(), DENSE)
    np.testing.assert_array_equal(s.to_scipy().toarray()[0], DENSE)


def test_scipy_one_dimensional_and_duplicates():
    x = scipy_sparse.coo_array((np.array([1, 2, 4], np.float64), ([7, 3, 7],)), shape=(9,))
    np.testing.assert_array_equal(
        Stream.from_dense(x).to_dense(), [0, 0, 0, 2, 0, 0, 0, 5, 0]
    )
    with pytest.raises(ValueError, match=r"one sparse row or column, got \(2, 3\)"):
        Stream.from_dense(scipy_sparse.csr_array(np.ones((2, 3))))


REPEATED = {  # the same three pairs, two of them at index 7
    "from_pairs": lambda values: Stream.from_pairs(9, [7, 3, 7], values),
    "from_pairs, rows": lambda values: Stream.from_pairs(
        9, [2, 1, 2], np.repeat(values, 3), block=3
    ),
    "scipy row": lambda values: Stream.from_dense(
        scipy_sparse.coo_array((values, ([0, 0, 0], [7, 3, 7])), shape=(1, 9))
    ),
    "scipy vector": lambda values: Stream.from_dense(
        scipy_sparse.coo_array((values, ([7, 3, 7],)), shape=(9,))
    ),
    "torch": lambda values: Stream.from_dense(
        torch.sparse_coo_tensor(
            [[7, 3, 7]], torch.from_numpy(values), (9,), check_invariants=True
        )
    ),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("make", REPEATED)
def test_repeated_indices_keep_the_dtype(make, dtype):
    largest = np.iinfo(dtype).max if dtype.kind == "i" else 2**20
    s = REPEATED[make](np.array([largest, 2, 1], dtype))
    with np.errstate(over="ignore"):
        total = np.add(dtype.type(largest), dtype.type(1))  # integers wrap around
    assert s.dtype == s.values.dtype == dtype
    assert s.to_dense()[[3, 7]].tolist() == [2, total]


def test_ranks_with_and_without_repeated_indices_agree():
    def body(comm):
        indices, values = ([7, 3, 7], [1, 2, 4]) if comm.rank else ([3, 7], [2, 5])
        x = Stream.from_pairs(9, indices, np.array(values, np.int32))
        return comm.allreduce(x)

    for total in sparcml.launch(body, 2):
        assert total.dtype == np.int32
        np.testing.assert_array_equal(total.to_dense(), [0, 0, 0, 4, 0, 0, 0, 10, 0])


def test_torch_dense():
    s = Stream.from_dense(torch.from_numpy(DENSE).reshape(5, 10))
    np.testing.assert_array_equal(s.to_dense(), DENSE)
    assert s.nnz == 3


def test_torch_sparse_with_duplicates():
    x = torch.sparse_coo_tensor([[7, 3, 7]], [1.0, 2.0, 4.0], (9,), check_invariants=True)
    s = Stream.from_dense(x)
    np.testing.assert_array_equal(s.indices, [3, 7])
    assert torch.equal(s.to_torch().to_dense(), x.to_dense())


def test_torch_embedding_gradient_becomes_blocks():
    layer = torch.nn.Embedding(20, 4, sparse=True)
    layer(torch.tensor([3, 7, 3])).sum().backward()
    s = Stream.from_dense(layer.weight.grad)
    assert (s.block, s.nnz, s.size) == (4, 2, 80)
    assert torch.equal(s.to_torch().to_dense(), layer.weight.grad.to_dense())


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_what_is_refused():
    for tensor, why in (
        (torch.arange(4).short(), r"int64, got torch.int16; convert with \.long\(\)"),
        (torch.ones(4, dtype=torch.bfloat16), "got torch.bfloat16; convert with .float()"),
        (torch.eye(4).to_sparse_csr(), "dense or sparse COO, got torch.sparse_csr"),
    ):
        with pytest.raises(TypeError, match=why):
            Stream.from_dense(tensor)
    counts = torch.tensor([0, 0, 2**40, 0, 0, 0])
    assert torch.equal(Stream.from_dense(counts).to_torch().to_dense(), counts)
    with pytest.raises(ValueError, match="fill must be 0"):
        Stream.from_dense(scipy_sparse.csr_array(DENSE[None]), fill=1.0)


def test_lists_become_float32():
    s = Stream.from_dense([0, 1, 0, 0, 2.5])
    assert s.dtype == np.float32
    np.testing.assert_array_equal(s.to_dense(), [0, 1, 0, 0, 2.5])
