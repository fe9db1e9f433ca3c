"""Weighted sums of streams: the same bits from dense and sparse operands."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparcml import Stream
from sparcml.stream.reduction import CHUNK, weighted_sum


def as_stream(array, block, is_sparse):
    if not is_sparse:
        return Stream.unchecked(len(array), None, array, block)
    rows = array.reshape(-1, block)
    indices = np.flatnonzero((rows != 0).any(1))
    return Stream(len(array), indices, rows[indices], block=block)


@given(data=st.data())
def test_dense_and_sparse_give_the_same_bits(data):
    block = data.draw(st.sampled_from([1, 3, 16]))
    blocks = data.draw(st.integers(0, 300))
    count = data.draw(st.integers(1, 4))
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    arrays = []
    for _ in range(count):
        kept = rng.random((blocks, 1)) < data.draw(st.sampled_from([0.02, 0.5, 1.0]))
        arrays.append((rng.standard_normal((blocks, block)) * kept).astype(dtype).ravel())
    weights = [float(w) for w in rng.choice([0.0, 0.5, 1 / 3, 0.7], count)]
    weights[0] = weights[0] or 1.0
    used = [(w, x) for w, x in zip(weights, arrays, strict=True) if w]
    want = used[0][0] * used[0][1].astype(np.float64)
    for w, x in used[1:]:
        want = want + w * x.astype(np.float64)
    for _ in range(3):
        forms = [data.draw(st.booleans()) for _ in arrays]
        streams = [as_stream(x, block, f) for x, f in zip(arrays, forms, strict=True)]
        result = weighted_sum(weights, streams)
        assert (result.size, result.block, result.dtype) == (blocks * block, block, dtype)
        np.testing.assert_array_equal(result.to_dense(), want.astype(dtype))


def test_chunks_have_the_bits_of_one():
    rng = np.random.default_rng(0)
    n = 3 * CHUNK + 77
    arrays = [rng.standard_normal(n).astype(np.float32) for _ in range(3)]
    arrays[1] *= rng.random(n) < 0.01
    streams = [as_stream(x, 1, number == 1) for number, x in enumerate(arrays)]
    want = sum(x.astype(np.float64) / 3 for x in arrays)
    result = weighted_sum([1 / 3] * 3, streams).to_dense()
    np.testing.assert_allclose(result, want, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(
        result[-77:],
        weighted_sum([1 / 3] * 3, [as_stream(x[-77:], 1, False) for x in arrays]).values,
    )


def test_equal_values_do_not_drift():
    x = np.random.default_rng(1).standard_normal(1000).astype(np.float32)
    same = Stream.from_dense(x)
    for degree in range(1, 50):
        weights = [1 / (1 + degree)] * (1 + degree)
        np.testing.assert_array_equal(
            weighted_sum(weights, [same] * (1 + degree)).values, x
        )


@pytest.mark.parametrize("is_sparse", [False, True])
def test_special_values(is_sparse):
    x = np.array([np.inf, -np.inf, -np.nan, 3e38, 1e-40, 5.0], np.float32)
    y = np.array([-np.inf, -np.inf, 1.0, 3e38, 1e-40, np.nan], np.float32)
    streams = [as_stream(v, 1, is_sparse) for v in (x, y)]
    result = weighted_sum([0.5, 0.5], streams)
    want = np.array([np.nan, -np.inf, np.nan, 3e38, 1e-40, np.nan], np.float32)
    assert result.to_dense().tobytes() == want.tobytes()
    # A weight of 0 leaves a stream out, so that an infinity in it does not count.
    np.testing.assert_array_equal(weighted_sum([0.0, 1.0], streams).to_dense(), y)
    single = weighted_sum([1.0], streams[:1]).to_dense()
    assert single.view(np.uint32)[2] == 0x7FC00000
