"""Momentum in the pass that adds the residual equals momentum in a pass before it."""

import numpy as np
import pytest

from sparcml.kernels import Velocity, selection
from tests.kernels.reference import selection as reference

from .reduction_data import same_bits, same_entries
from .selection_data import SIZES, hard

pytestmark = pytest.mark.usefixtures("isa")
over_dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def same_numbers(got, want):
    """The same bits, but any NaN for a NaN."""
    nan = np.isnan(want)
    assert np.array_equal(nan, np.isnan(got))
    same_bits(got[~nan], want[~nan])


def same_taken(got, want, out, left):
    if isinstance(want, tuple):
        same_entries(got[:2], want[:2])
        got, want = got[2], want[2]
    assert np.array_equal(got, want, equal_nan=True)
    same_bits(out, left)


@over_dtypes
@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("size", [*SIZES, 2049, 20_000])
def test_momentum_in_the_same_pass_equals_momentum_before_it(size, nesterov, dtype):
    cases = [*hard(np.random.default_rng(size), size, dtype).values()]
    for r, g, u in zip(cases, cases[1:] + cases[:1], cases[2:] + cases[:2], strict=True):
        for name, *arguments in (
            ("top_k_with_residual", max(1, size // 50)),
            ("bucket_top_k_with_residual", 4, 512),
            ("at_least_with_residual", 2.0),
            ("add_residual",),
        ):
            old = u.copy()
            outs = [np.empty_like(r) for _ in range(4)]
            left, out, want_velocity, velocity = outs
            want = getattr(reference, name)(
                r, g, *arguments, left, 0.3, Velocity(u, want_velocity, 0.9, nesterov)
            )
            got = getattr(selection, name)(
                r, g, *arguments, out, 0.3, Velocity(u, velocity, 0.9, nesterov)
            )
            same_bits(u, old)
            same_numbers(velocity, want_velocity)
            same_taken(got, want, out, left)
            in_place = Velocity(old, old, 0.9, nesterov)
            getattr(selection, name)(r, g, *arguments, out, 0.3, in_place)
            same_numbers(old, want_velocity)


@over_dtypes
@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("shift", [0, 1])
def test_large_momentum_is_written_past_the_caches(shift, nesterov, dtype):
    # From 4 MB on, and only if it starts at a cache line.
    size = (1 << 22) // np.dtype(dtype).itemsize + 100
    rng = np.random.default_rng(1)
    r, g, u = (rng.standard_normal(size).astype(dtype) for _ in range(3))
    room = np.full(size + 200, 7, dtype)
    start = -room.ctypes.data % 64 // room.itemsize + 16 + shift
    velocity, left, out = room[start : start + size], np.empty_like(r), np.empty_like(r)
    wanted = np.empty_like(r)
    want = reference.top_k_with_residual(
        r, g, size // 100, left, 1.0, Velocity(u, wanted, 0.9, nesterov)
    )
    got = selection.top_k_with_residual(
        r, g, size // 100, out, 1.0, Velocity(u, velocity, 0.9, nesterov)
    )
    same_taken(got, want, out, left)
    same_bits(velocity, wanted)
    assert (room[:start] == 7).all()
    assert (room[start + size :] == 7).all()
