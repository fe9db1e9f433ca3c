"""Selections equal their reference bit for bit, on every instruction set."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparcml.kernels import _core, selection
from tests.kernels.reference import selection as reference

from .reduction_data import GUARD, guarded, intact, odd, same_bits, same_entries, values
from .selection_data import SAMPLED, SIZES, adversaries, hard

pytestmark = pytest.mark.usefixtures("isa")
over_dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])
many_examples = settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def ks(size):
    some = (0, 1, 2, 7, size // 100, size // 3, size - 1, size)
    return sorted({min(max(k, 0), size) for k in some})


def same_taken(got, want, out, left):
    same_entries(got[:2], want[:2])
    assert np.array_equal(got[2], want[2], equal_nan=True)
    same_bits(out, left)


def test_the_reference_is_the_definition():
    v = np.array([1, -3, 3, 0, np.nan, -np.inf, 2, -0.0], np.float32)
    assert reference.top_k(v, 2)[0].tolist() == [4, 5]
    assert reference.top_k(v, 3)[0].tolist() == [1, 4, 5]
    assert reference.top_k(v, 7)[0].tolist() == [0, 1, 2, 3, 4, 5, 6]
    rank = reference.magnitude_keys(v).astype(np.int64)
    for k in range(9):
        order = np.lexsort((np.arange(v.size), -rank))
        assert reference.top_k(v, k)[0].tolist() == sorted(order[:k].tolist())


@over_dtypes
@pytest.mark.parametrize("size", [*SIZES, SAMPLED, 70_000])
def test_top_k_equals_the_reference(size, dtype):
    rng = np.random.default_rng(size)
    for v in hard(rng, size, dtype).values():
        for k in ks(size):
            same_entries(selection.top_k(v, k), reference.top_k(v, k))


@over_dtypes
@pytest.mark.parametrize("attempts", [1, 2])
def test_top_k_of_vectors_that_know_the_sample(attempts, dtype):
    rng = np.random.default_rng(1)
    for v in adversaries(rng, 300_000, dtype, attempts).values():
        for k in (1, 150, 1500, 100_000):
            want = reference.top_k(v, k)
            same_entries(selection.top_k(v, k), want)
            left = np.empty_like(v)
            taken = selection.top_k_with_residual(v, np.zeros_like(v), k, left)
            same_entries(taken[:2], want)
            assert not left[want[0]].any()


@over_dtypes
@many_examples
@given(data=st.data())
def test_top_k_of_anything(dtype, data):
    pool = [*odd(dtype), *np.linspace(-2, 2, 5, dtype=dtype)]
    v = np.array(data.draw(st.lists(st.sampled_from(pool), max_size=200)), dtype)
    k = data.draw(st.integers(0, v.size))
    bucket = data.draw(st.integers(1, 200))
    same_entries(selection.top_k(v, k), reference.top_k(v, k))
    got = selection.bucket_top_k(v, max(1, k), bucket)
    same_entries(got, reference.bucket_top_k(v, max(1, k), bucket))
    threshold = float(np.nan_to_num(abs(data.draw(st.sampled_from(pool)))))
    same_entries(selection.at_least(v, threshold), reference.at_least(v, threshold))


@over_dtypes
@pytest.mark.parametrize("bucket", [1, 3, 64, 100, 128, 512, 2048, 10_000])
def test_bucket_top_k_equals_the_reference(bucket, dtype):
    rng = np.random.default_rng(bucket)
    for size in (0, 1, 511, 512, 1024, 5000):
        for v in hard(rng, size, dtype).values():
            for k in (1, 4, 9, 40, bucket):
                got = selection.bucket_top_k(v, k, bucket)
                same_entries(got, reference.bucket_top_k(v, k, bucket))


@over_dtypes
@pytest.mark.parametrize("size", [*SIZES, 40_000])
def test_at_least_equals_the_reference(size, dtype):
    rng = np.random.default_rng(size)
    for v in hard(rng, size, dtype).values():
        for threshold in (0.0, 1e-310, 1e-44, 1.0, 1.5, 3.0, np.inf):
            same_entries(selection.at_least(v, threshold), reference.at_least(v, threshold))


@over_dtypes
@pytest.mark.parametrize("size", [*SIZES, 2048, 2049, 20_000])
def test_taking_equals_adding_selecting_and_zeroing(size, dtype):
    rng = np.random.default_rng(size)
    cases = hard(rng, size, dtype)
    for r, g in zip(cases.values(), reversed(cases.values()), strict=True):
        k = max(1, size // 50)
        for name, *arguments in (
            ("top_k_with_residual", k),
            ("bucket_top_k_with_residual", 4, 512),
            ("bucket_top_k_with_residual", 20, 100),
            ("at_least_with_residual", 2.0),
        ):
            left, out = np.empty_like(r), np.empty_like(r)
            want = getattr(reference, name)(r, g, *arguments, left)
            got = getattr(selection, name)(r, g, *arguments, out)
            same_taken(got, want, out, left)
            again = r.copy()  # in place
            got = getattr(selection, name)(again, g, *arguments, again)
            same_taken(got, want, again, left)
            want = getattr(reference, name)(r, g, *arguments, left, 0.3)
            got = getattr(selection, name)(r, g, *arguments, out, 0.3)
            same_taken(got, want, out, left)


@over_dtypes
@pytest.mark.parametrize("block", [1, 7, 8, 64, 100, 3000])
def test_squares_have_one_order(block, dtype):
    rng = np.random.default_rng(block)
    for size in (0, 1, 63, 1000, 2048, 2049, 9999):
        v = values(rng, size, dtype, 0.0) * 1000
        for x in (v, values(rng, size, dtype)):
            same_bits(
                selection.block_squared_norms(x, block),
                reference.block_squared_norms(x, block),
            )
        out = np.empty_like(v)
        assert selection.add_residual(v, v, out) == reference.add_residual(v, v, out)
        total = float(np.sum(np.square(2 * v.astype(np.float64))))
        assert selection.add_residual(v, v, out) == pytest.approx(total, rel=1e-12)


def test_squares_tell_of_what_is_not_finite_and_of_nothing_else():
    g = np.full(100, 3e38, np.float32)
    out = np.empty_like(g)
    assert np.isfinite(selection.add_residual(np.zeros_like(g), g, out))
    for bad in (np.nan, np.inf):
        g[70] = bad
        assert not np.isfinite(selection.add_residual(np.zeros_like(g), g, out))
    assert not np.isfinite(selection.add_residual(np.full(100, 3e38, np.float32), g, out))


@over_dtypes
@pytest.mark.parametrize("size", [65, 513, 2049, 40_000])
def test_nothing_is_written_outside(size, dtype):
    rng = np.random.default_rng(size)
    for v in hard(rng, size, dtype).values():
        for k in (1, size // 3, size):
            room = _core.top_k_capacity(size, k)
            oi, ov, out = (
                guarded(room, np.uint32),
                guarded(room, dtype),
                guarded(size, dtype),
            )
            _core.top_k(v, k, oi, ov)
            _core.top_k_with_residual(v, v, k, out, oi, ov)
            assert intact(oi)
            assert intact(ov)
            assert intact(out)
        for room in (0, 5, 64, 70, size):
            oi, ov = guarded(room, np.uint32), guarded(room, dtype)
            assert _core.at_least(v, 1.0, oi, ov) == reference.at_least(v, 1.0)[0].size
            assert intact(oi)
            assert intact(ov)
        room = size // 512 * 4 + min(4, size % 512)
        oi, ov = guarded(room, np.uint32), guarded(room, dtype)
        _core.bucket_top_k(v, 4, 512, oi, ov)
        assert intact(oi)
        assert intact(ov)
    assert GUARD


def test_arguments_are_checked():
    v = np.ones(100, np.float32)
    oi, ov = np.full(300, 9, np.uint32), np.full(300, 9, np.float32)
    for bad in (
        lambda: _core.top_k(v, 101, oi, ov),
        lambda: _core.top_k(v, 1, oi[:10], ov[:10]),
        lambda: _core.top_k(v, 1, oi, ov[:10]),
        lambda: _core.bucket_top_k(v, 0, 10, oi, ov),
        lambda: _core.bucket_top_k(v, 11, 10, oi, ov),
        lambda: _core.bucket_top_k(v, 1, 10, oi[:9], ov[:9]),
        lambda: _core.at_least(v, -1.0, oi, ov),
        lambda: _core.at_least(v, np.nan, oi, ov),
        lambda: _core.add_residual(v, v[:9], np.empty_like(v)),
        lambda: _core.add_residual(v, v, np.empty(9, np.float32)),
        lambda: _core.add_residual(v, v, v.copy(), 1.0, (v[:9], v.copy(), 0.9, False)),
        lambda: _core.add_residual(
            v, v, v.copy(), 1.0, (v, np.empty(9, v.dtype), 0.9, False)
        ),
        lambda: _core.block_squared_norms(v, 0, np.empty(1)),
        lambda: _core.block_squared_norms(v, 10, np.empty(9)),
    ):
        with pytest.raises(ValueError, match="must"):
            bad()
    assert (oi == 9).all()
