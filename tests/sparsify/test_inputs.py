"""Every kind of vector: shapes, layouts, short floats, tensors."""

import numpy as np
import pytest

import sparcml
from sparcml.sparsify.vector import Device

from ..kernels.reduction_data import same_bits
from ..kernels.selection_data import hard
from ..rosters import SPARSIFIERS
from .vectors import SIZES, gradient

over_roster = pytest.mark.parametrize("name", SPARSIFIERS)


def same(a, b):
    np.testing.assert_array_equal(a.indices, b.indices)
    same_bits(a.raw_values, b.raw_values)
    assert (a.size, a.block) == (b.size, b.block)


@over_roster
def test_shapes_and_layouts(name):
    v = gradient(1, 1200)
    want = SPARSIFIERS[name].select(v)
    same(SPARSIFIERS[name].select(v.reshape(30, 40)), want)
    same(SPARSIFIERS[name].select(np.asfortranarray(v.reshape(30, 40))), want)
    same(SPARSIFIERS[name].select(v.astype(">f4")), want)
    same(SPARSIFIERS[name].select(np.repeat(v, 2)[::2]), want)


@over_roster
def test_float16_is_selected_from_as_float32(name):
    v = gradient(2, 1000).astype(np.float16)
    stream = SPARSIFIERS[name].select(v)
    assert stream.dtype == np.float32
    same(stream, SPARSIFIERS[name].select(v.astype(np.float32)))


@over_roster
def test_tensors(name):
    torch = pytest.importorskip("torch")
    sparsifier, v = SPARSIFIERS[name], gradient(3, 1000)
    x = torch.from_numpy(v)
    same(sparsifier.select(x.requires_grad_()), sparsifier.select(v))
    same(
        sparsifier.select(x.reshape(20, 50).T),
        sparsifier.select(v.reshape(20, 50).T),
    )
    same(sparsifier.select(x.double()), sparsifier.select(v.astype(np.float64)))
    for short in (torch.float16, torch.bfloat16):
        wide = x.detach().to(short)
        same(sparsifier.select(wide), sparsifier.select(wide.float()))


def test_a_tensor_in_main_memory_is_not_copied():
    torch = pytest.importorskip("torch")
    from sparcml.sparsify.vector import Host, as_source

    x = torch.ones(10)
    source = as_source(x)
    assert isinstance(source, Host)
    assert source.values.ctypes.data == x.data_ptr()


@over_roster
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", SIZES)
def test_a_device_selects_the_same(name, dtype, size):
    """The operations for other devices, here on tensors in main memory."""
    torch = pytest.importorskip("torch")
    sparsifier = SPARSIFIERS[name]
    for v in hard(np.random.default_rng(size), size, dtype).values():
        there = sparsifier.select_from(
            Device(torch.from_numpy(v)), 5, sparsifier.initial_state()
        )
        same(there, sparsifier.select(v, seed=5))


def test_what_cannot_be_selected_from():
    with pytest.raises(TypeError, match="NumPy array or a torch tensor, got list"):
        sparcml.TopK(k=1).select([1.0, 2.0])
    with pytest.raises(TypeError, match="must be float32 or float64, got int64"):
        sparcml.TopK(k=1).select(np.arange(3))
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match=r"got torch\.int64"):
        sparcml.TopK(k=1).select(torch.arange(3))
    with pytest.raises(TypeError, match="sparse"):
        sparcml.TopK(k=1).select(torch.eye(3).to_sparse())
