"""What holds for every sparsifier: valid streams, nothing lost, one result everywhere."""

from typing import Any

import numpy as np
import pytest

import sparcml
from sparcml import kernels

from ..kernels.reduction_data import same_bits
from ..kernels.selection_data import hard
from ..rosters import EXACT, SPARSIFIERS
from .vectors import SIZES, gradient

over_roster = pytest.mark.parametrize("name", SPARSIFIERS)
over_dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def check(stream, size, dtype):
    """A stream that also the public constructor would take."""
    again = sparcml.Stream(size, stream.indices, stream.values, block=stream.block)
    assert again.nnz == stream.nnz
    assert stream.dtype == dtype


@over_roster
@over_dtypes
@pytest.mark.parametrize("size", SIZES)
def test_streams_are_valid(name, dtype, size):
    sparsifier = SPARSIFIERS[name]
    v = gradient(size, size, dtype)
    stream = sparsifier.select(v, seed=3)
    check(stream, size, dtype)
    count = sparsifier.count(size)
    assert count is None or stream.nnz == count
    if name in EXACT:
        np.testing.assert_array_equal(
            stream.to_dense(), np.where(stream.to_dense() != 0, v, 0)
        )
    same_bits(sparsifier.select(v, seed=3).values.reshape(-1), stream.values.reshape(-1))


@over_roster
@over_dtypes
@pytest.mark.parametrize("size", SIZES)
def test_nothing_is_lost(name, dtype, size):
    sparsifier = SPARSIFIERS[name]
    residual, new = gradient(1, size, dtype), gradient(2, size, dtype)
    owed = residual + new
    taken = sparsifier.select_with_residual(residual, new, seed=5)
    check(taken.sent, size, dtype)
    total = taken.sent.to_dense() + taken.residual
    if name in EXACT:
        same_bits(total, owed)
        stored = np.repeat(taken.sent.indices, taken.sent.block).astype(np.int64)
        stored = stored * taken.sent.block + np.tile(
            np.arange(taken.sent.block), taken.sent.nnz
        )
        assert not taken.residual[stored].any()
    np.testing.assert_allclose(total, owed, rtol=0, atol=1e-4)
    assert taken.squared_norm == pytest.approx(np.sum(np.square(owed, dtype=np.float64)))


@over_roster
@over_dtypes
def test_taking_is_adding_selecting_and_subtracting(name, dtype):
    sparsifier = SPARSIFIERS[name]
    cases = hard(np.random.default_rng(4), 3000, dtype)
    for residual, new in zip(cases.values(), reversed(cases.values()), strict=True):
        owed = kernels.combine_dense("sum", residual, new)
        want = sparsifier.select(owed, seed=9)
        kept = (residual.copy(), new.copy())
        fresh = sparsifier.select_with_residual(residual, new, seed=9)
        same_bits(residual, kept[0])
        same_bits(new, kept[1])
        in_place = residual.copy()
        taken = sparsifier.select_with_residual(in_place, new, seed=9, out=in_place)
        assert taken.residual is in_place
        for x in (fresh, taken):
            np.testing.assert_array_equal(x.sent.indices, want.indices)
            same_bits(x.sent.raw_values, want.raw_values)
        same_bits(taken.residual, fresh.residual)
        assert np.isfinite(owed).all() or not np.isfinite(fresh.squared_norm)


@over_roster
def test_the_rest_comes_later(name):
    """The telescope of error feedback: all that was sent and the rest are what was owed."""
    sparsifier, size, steps = SPARSIFIERS[name], 1000, 40
    residual, sent = np.zeros(size), np.zeros(size)
    owed, state = np.zeros(size), sparsifier.initial_state()
    for step in range(steps):
        new = gradient(step, size, np.float64)
        owed += new
        taken = sparsifier.select_with_residual(
            residual, new, seed=step, state=state, out=residual
        )
        sent += taken.sent.to_dense()
    np.testing.assert_allclose(
        sent + residual, owed, rtol=1e-9, atol=1e-6 * abs(sent).max()
    )


@over_roster
@pytest.mark.parametrize("isa", kernels.isas())
def test_every_instruction_set_selects_the_same(name, isa):
    v = hard(np.random.default_rng(8), 20_000, np.float32)["odd"]
    before = kernels.isa()
    want = SPARSIFIERS[name].select_with_residual(v, v, seed=1)
    try:
        kernels.use_isa(isa)
        got = SPARSIFIERS[name].select_with_residual(v, v, seed=1)
    finally:
        kernels.use_isa(before)
    np.testing.assert_array_equal(got.sent.indices, want.sent.indices)
    same_bits(got.sent.raw_values, want.sent.raw_values)
    same_bits(got.residual, want.residual)


@over_roster
def test_what_is_not_finite_is_sent_or_kept_and_never_changed(name):
    """A NaN or an infinity is in the stream or in the rest, and the squares tell of it."""
    for bad in (np.nan, np.inf, -np.inf):
        v = gradient(1, 1000)
        v[500] = bad
        taken = SPARSIFIERS[name].select_with_residual(np.zeros_like(v), v)
        assert not np.isfinite(taken.squared_norm)
        there = [taken.sent.to_dense()[500], taken.residual[500]]
        assert any(np.array_equal(x, v[500], equal_nan=True) for x in there)
        if not name.startswith("RandomK"):
            assert np.array_equal(there[0], v[500], equal_nan=True)
            assert there[1] == 0


def test_only_the_scaled_random_one_is_unbiased():
    assert [name for name, s in SPARSIFIERS.items() if not s.biased] == ["RandomK"]


def test_what_take_cannot_use():
    s = sparcml.TopK(k=1)
    v = np.ones(8, np.float32)
    frozen = v.copy()
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="gradient must have 8 values of float32"):
        s.select_with_residual(v, v[:4])
    with pytest.raises(ValueError, match="gradient must have 8 values of float32"):
        s.select_with_residual(v, v.astype(np.float64))
    with pytest.raises(ValueError, match="out must have 8"):
        s.select_with_residual(v, v, out=np.empty(9, np.float32))
    with pytest.raises(ValueError, match="contiguous"):
        s.select_with_residual(v, np.ones(16, np.float32)[::2])
    with pytest.raises(ValueError, match="writable"):
        s.select_with_residual(v, v, out=frozen)
    with pytest.raises(TypeError, match="float32 or float64"):
        s.select_with_residual(v.astype(np.int32), v)
    with pytest.raises(TypeError, match="2 dimensions"):
        s.select_with_residual(v.reshape(2, 4), v.reshape(2, 4))


@pytest.mark.parametrize("name", ["residual", "gradient", "out"])
def test_take_wants_vectors_of_numpy(name):
    torch = pytest.importorskip("torch")
    for bad in ([1.0] * 8, torch.ones(8), None):
        names = ("residual", "gradient", "out")
        given: dict[str, Any] = {key: np.ones(8, np.float32) for key in names}
        given[name] = bad
        if bad is None and name == "out":
            continue
        with pytest.raises(TypeError, match=f"{name} must be a NumPy vector of float32 or"):
            sparcml.TopK(k=1).select_with_residual(**given)


def test_what_take_must_not_write_over():
    room = np.ones(32, np.float32)
    residual, gradient = room[:8], room[8:16]
    s = sparcml.TopK(k=1)
    for out in (gradient, room[4:12], room[15:23]):
        with pytest.raises(ValueError, match="must not overlap the gradient"):
            s.select_with_residual(residual, gradient, out=out)
    for shift in (1, 7):
        with pytest.raises(ValueError, match="the residual itself or not overlap it"):
            s.select_with_residual(residual, room[24:], out=room[shift : shift + 8])
    assert (room == 1).all()
    assert s.select_with_residual(residual, gradient, out=room[16:24]).residual.sum() == 14
    assert s.select_with_residual(residual, gradient, out=room[:8]).residual is not residual
    assert residual.sum() == 14


@over_roster
@over_dtypes
@pytest.mark.parametrize("nesterov", [False, True])
def test_a_velocity_equals_momentum_before_the_selection(name, dtype, nesterov):
    sparsifier, size = SPARSIFIERS[name], 3000
    residual, new, u = (gradient(i, size, dtype) for i in range(3))
    states = [sparsifier.initial_state() for _ in range(2)]
    for step in range(3):
        v, term = kernels.add_momentum(0.9, u, new, nesterov=nesterov)
        want = sparsifier.select_with_residual(
            residual, term, seed=step, state=states[0], scale=0.5
        )
        velocity = kernels.Velocity(u, np.empty_like(u), 0.9, nesterov)
        got = sparsifier.select_with_residual(
            residual, new, seed=step, state=states[1], scale=0.5, velocity=velocity
        )
        same_bits(velocity.out, v)
        same_bits(got.residual, want.residual)
        same_bits(got.sent.raw_values, want.sent.raw_values)
        same_bits(got.sent.indices, want.sent.indices)
        assert got.squared_norm == want.squared_norm
        same_bits(*states)
        residual, u = got.residual, velocity.out


def test_a_velocity_is_checked():
    x = np.ones(10, np.float32)
    for u, out in ((x[:9], x.copy()), (x, np.empty(10)), (x, x), (x[::2], x.copy())):
        velocity = kernels.Velocity(u, out, 0.9)
        with pytest.raises(ValueError, match="velocity"):
            sparcml.TopK(k=1).select_with_residual(x, x.copy(), velocity=velocity)
