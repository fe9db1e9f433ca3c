"""Codes of indices equal their definitions bit for bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sparcml import kernels
from sparcml.kernels import coding
from tests.kernels.reference import coding as reference

from .indices import LIMIT, blocks_of, quick, random_indices, u32

pytestmark = pytest.mark.usefixtures("isa")
EDGES = {
    "empty": [],
    "zero": [0],
    "one": [1],
    "last": [LIMIT - 1],
    "both ends": [0, LIMIT - 1],
    "run": range(200),
    "run at the end": range(LIMIT - 200, LIMIT),
    "two runs": [*range(100), *range(5000, 5100)],
    "far apart": [i << 27 for i in range(32)],
    "a far one among near ones": [*range(0, 64, 2), 900, *range(1000, 1100, 3)],
}


index_sets = st.builds(
    lambda gaps: u32(np.cumsum(np.array(gaps, np.int64) + 1) - 1),
    st.lists(
        st.one_of(st.integers(0, 3), st.integers(0, 300), st.integers(0, 2**23)),
        max_size=300,
    ),
)


def check_gap(indices: NDArray[np.uint32], r: int) -> None:
    section = coding.gap_encode(indices, r)
    np.testing.assert_array_equal(section, reference.gap_encode(indices, r))
    assert section.size % 8 == 0
    blocks = blocks_of(indices)
    decoded = coding.gap_decode(section, indices.size, blocks)
    np.testing.assert_array_equal(decoded, indices)
    if indices.size:
        with pytest.raises(ValueError, match=r"gap: (index out|more entries)"):
            coding.gap_decode(section, indices.size, blocks - 1)


@pytest.mark.parametrize("edge", EDGES)
def test_gap_edges(edge):
    indices = u32(EDGES[edge])
    r, nbytes = kernels.gap_plan(indices)
    assert coding.gap_encode(indices).size == nbytes
    # Not so small an r that the section is huge.
    for more in range(max(r, blocks_of(indices).bit_length() - 18), 32):
        check_gap(indices, more)


@pytest.mark.parametrize("r", range(32))
def test_gap_every_parameter_and_tail(r):
    indices = random_indices(400, min(0.5, 1 / 2 ** min(r, 20)), r)
    for n in [*range(1, 18), *range(60, 70), *range(120, 138), 400]:
        check_gap(indices[:n], r)


@pytest.mark.parametrize("density", [0.9, 0.5, 0.1, 0.01, 0.001, 0.0001])
def test_gap_is_near_entropy(density):
    indices = random_indices(20_003, density)
    r, nbytes = kernels.gap_plan(indices)
    assert (r, nbytes) == reference.gap_plan(indices)
    assert nbytes == min(
        coding.gap_encode(indices, s).size for s in range(max(r - 2, 0), r + 3)
    )
    p = density
    entropy = -(p * np.log2(p) + (1 - p) * np.log2(1 - p)) / p
    assert 8 * nbytes / indices.size < max(1.04 * entropy, 1.25)
    check_gap(indices, r)


@quick
@given(index_sets, st.integers(0, 31))
def test_gap_round_trip(indices, more):
    r = min(kernels.gap_plan(indices)[0] + more % 4, 31)
    check_gap(indices, r)


@pytest.mark.parametrize("r", [18, 20, 21, 22, 25, 31])
def test_gap_sums_of_low_parts_do_not_wrap(r):
    fits = LIMIT >> r  # so many gaps of 2^r - 1
    for n in (fits, fits + 1, 2 * fits + 5):
        low = np.pad(np.ones(n * r, np.uint8), (0, -n * r % 64))
        high = np.pad(np.ones(n, np.uint8), (0, -n % 64))
        planes = np.packbits(np.append(low, high), bitorder="little")
        section = np.append(np.array([r, *[0] * 7], np.uint8), planes)
        if n == fits:
            decoded = coding.gap_decode(section, n, LIMIT)
            np.testing.assert_array_equal(decoded, (np.arange(1, n + 1) << r) - 1)
        else:
            with pytest.raises(ValueError, match="out of bounds"):
                coding.gap_decode(section, n, LIMIT)


@pytest.mark.parametrize("bad", [[1, 1], [2, 1], [0, LIMIT], [*range(20), 5], [7] * 100])
def test_encoders_refuse_bad_indices(bad):
    with pytest.raises(ValueError, match="ascending"):
        kernels.gap_plan(u32(bad))
    with pytest.raises(ValueError, match="ascending"):
        coding.gap_encode(u32(bad), 3)


@pytest.mark.parametrize("blocks", [*range(131), 1000])
def test_bitmap(blocks):
    for density in (0.02, 0.1, 0.5, 1):
        indices = random_indices(blocks, density, blocks)
        indices = indices[indices < blocks]
        section = reference.bitmap_encode(indices, blocks)
        decoded = coding.bitmap_decode(section, indices.size, blocks)
        np.testing.assert_array_equal(decoded, indices)


def test_bitmap_refuses():
    section = reference.bitmap_encode(u32([0, 69]), 70)
    for nnz, blocks in [(1, 70), (3, 70), (2, 69), (2, 64), (2, 129)]:
        with pytest.raises(ValueError, match="bitmap: "):
            coding.bitmap_decode(section, nnz, blocks)
