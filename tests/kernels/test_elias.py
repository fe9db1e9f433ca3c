"""Elias's omega code: the published code words, and kernels that give them bit by bit."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sparcml import kernels
from tests.kernels.reference import coding as reference

from .indices import quick

WORDS = {1: "0", 2: "100", 3: "110", 4: "101000", 8: "1110000", 16: "10100100000"}
LENGTHS = {1: 1, 2: 3, 4: 6, 8: 7, 16: 11, 32: 12, 64: 13, 512: 17, 1024: None}


def test_the_published_code_words():
    for x, word in WORDS.items():
        assert reference.elias_omega(x) == word
    for (first, length), end in zip(LENGTHS.items(), list(LENGTHS)[1:], strict=False):
        assert length is not None
        stop = min(end, 2 * first)
        assert {len(reference.elias_omega(x)) for x in range(first, stop)} == {length}
    assert reference.elias_gamma(5) == "00101"
    assert [len(reference.elias_gamma(x)) for x in (1, 2, 3, 4, 8, 16, 32)] == [
        1,
        3,
        3,
        5,
        7,
        9,
        11,
    ]


def test_codes_one_behind_the_other_can_be_told_apart():
    rng = np.random.default_rng(0)
    numbers = np.exp(rng.uniform(0, 20, 500)).astype(int).tolist()
    bits = iter("".join(reference.elias_omega(x) for x in numbers))
    assert [reference.read_omega(bits) for _ in numbers] == numbers
    assert next(bits, None) is None


def vectors():
    few = st.one_of(st.just(0), st.integers(-128, 127))
    return hnp.arrays(np.int8, st.integers(0, 300), elements=few)


@pytest.mark.usefixtures("isa")
@quick
@given(vectors())
def test_the_definition(levels):
    plan = kernels.elias_plan(levels)
    nonzeros = int(np.count_nonzero(levels))
    words = {False: reference.elias_dense(levels), True: reference.elias_sparse(levels)}
    assert plan == (len(words[False]), len(words[True]), nonzeros)
    for sparse, word in words.items():
        code = kernels.elias_encode(levels, sparse)
        np.testing.assert_array_equal(code, reference.pack_word(word))
        back = kernels.elias_decode(code, levels.size, sparse, nonzeros)
        np.testing.assert_array_equal(back, levels)
    np.testing.assert_array_equal(
        reference.read_elias_dense(words[False], levels.size), levels
    )
    back = reference.read_elias_sparse(words[True], nonzeros, levels.size)
    np.testing.assert_array_equal(back, levels)


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("gap", [1, 255, 256, 257, 1 << 16, 3 << 20])
def test_long_gaps(gap):
    levels = np.zeros(2 * gap + 5, np.int8)
    levels[[gap - 1, 2 * gap - 1]] = 127, -128
    code = kernels.elias_encode(levels, sparse=True)
    np.testing.assert_array_equal(code, reference.pack_word(reference.elias_sparse(levels)))
    back = kernels.elias_decode(code, levels.size, True, int(np.count_nonzero(levels)))
    np.testing.assert_array_equal(back, levels)


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("sparse", [False, True])
def test_hostile_changes(sparse):
    rng = np.random.default_rng(3)
    levels = rng.integers(-20, 20, 150, np.int8) * (rng.random(150) < 0.3)
    nonzeros = int(np.count_nonzero(levels))
    code = kernels.elias_encode(levels, sparse)
    for end in range(code.size):
        with pytest.raises(ValueError, match="elias"):
            kernels.elias_decode(code[:end], 150, sparse, nonzeros)
    with pytest.raises(ValueError, match="elias"):
        kernels.elias_decode(np.append(code, np.zeros(8, np.uint8)), 150, sparse, nonzeros)
    for bit in range(8 * code.size):
        changed = code.copy()
        changed[bit // 8] ^= 1 << bit % 8
        with suppress(ValueError):
            kernels.elias_decode(changed, 150, sparse, nonzeros)
    if sparse:
        for count in (nonzeros - 1, nonzeros + 1, 2**60):
            with pytest.raises(ValueError, match="elias"):
                kernels.elias_decode(code, 150, True, count)
    with pytest.raises(ValueError, match="elias"):
        kernels.elias_decode(code, 10**6, False)


@pytest.mark.usefixtures("isa")
@quick
@given(st.binary(max_size=200), st.integers(0, 300), st.integers(0, 300))
def test_hostile_bytes(data, count, nonzeros):
    raw = np.frombuffer(data, np.uint8)
    for sparse in (False, True):
        for section in (raw, raw[: raw.size // 8 * 8]):
            with suppress(ValueError):
                levels = kernels.elias_decode(section, count, sparse, nonzeros)
                again = kernels.elias_encode(levels, sparse)
                np.testing.assert_array_equal(again, section)  # one code for each


def test_bad_arguments():
    levels = np.ones(36, np.int8)  # of 4 bits: 24 bytes
    for nbytes in (0, 8, 16, 23, 25, 32):
        with pytest.raises(ValueError, match="exactly the words"):
            kernels._core.elias_encode(levels, False, np.empty(nbytes, np.uint8))
