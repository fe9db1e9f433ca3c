"""QSGD: what the paper says of it."""

import math
from dataclasses import replace

import numpy as np
import pytest

import sparcml
from sparcml import QSGD
from sparcml.quantize import from_wire

from .vectors import VECTORS, draws

NORMS = {"max": lambda v: np.abs(v).max(), "l2": lambda v: np.sqrt((v**2).sum())}
norms = pytest.mark.parametrize("norm", NORMS)


def grid_of(vector, norm, s):
    """In steps of norm / s, in float64."""
    v = vector.astype(np.float64)
    return s * np.abs(v) / NORMS[norm](v)


@norms
@pytest.mark.parametrize("s", [1, 2, 7, 30, 127])
@pytest.mark.parametrize("name", VECTORS)
def test_either_neighbour_with_the_right_chance(norm, s, name):
    """Per value: within one step always, and the upper one as often as it should be."""
    trials, vector = 2000, VECTORS[name]
    coder = QSGD(levels=s, bucket=None, norm=norm)
    v = vector.astype(np.float64)
    step = NORMS[norm](v) / s
    rows = draws(coder, vector, trials)
    assert (np.abs(rows - v) < step * (1 + 1e-4)).all()
    x = grid_of(vector, norm, s)
    p = x - np.floor(x + 1e-4)
    sigma = np.sqrt(np.maximum(p * (1 - p), 0) / trials)
    off = np.abs(rows.mean(0) - v) / step
    assert (off < 5 * sigma + 25 / trials * (p < 25 / trials) + 1e-4).all()
    variance = (step**2 * np.maximum(p * (1 - p), 0)).sum()
    error = ((rows - v) ** 2).sum(1)
    slack = 5 * error.std() / np.sqrt(trials) + 1e-4 * step**2 * v.size
    assert abs(error.mean() - variance) < slack
    assert error.mean() < v.size * step**2 / 4 + slack


@pytest.mark.parametrize("s", [1, 3, 15, 127])
@pytest.mark.parametrize("name", VECTORS)
def test_length_and_sparsity_by_the_l2_norm(s, name):
    coder, vector = QSGD(levels=s, bucket=None, norm="l2"), VECTORS[name]
    trials, d = 500, vector.size
    rows = draws(coder, vector, trials)
    lengths, entries = (rows**2).sum(1), np.count_nonzero(rows, axis=1)
    squared = (vector.astype(np.float64) ** 2).sum()
    slack = 5 * lengths.std() / np.sqrt(trials)
    assert lengths.mean() - slack <= (1 + math.sqrt(d) / s) * squared * (1 + 1e-5)
    assert lengths.mean() - slack <= (1 + coder.omega(d)) * squared * (1 + 1e-5)
    slack = 5 * entries.std() / np.sqrt(trials)
    assert entries.mean() - slack <= s * (s + math.sqrt(d))


@pytest.mark.parametrize("s", range(1, 128))
def test_the_grid_stays_where_it_is(s):
    levels = np.arange(-s, s + 1)
    for norm in (1.0, 0.7, 3e-5, 123.456, 2.0**-147 * s, 2e38):
        grid = (levels * (norm / s)).astype(np.float32)
        coder = QSGD(levels=s, bucket=None)
        _, found = coder.quantize(grid, s)
        np.testing.assert_array_equal(found, levels)
        once = coder.decode(coder.encode(grid, 1))
        for seed in (2, 3):
            again = coder.decode(coder.encode(once, seed))
            np.testing.assert_allclose(again, once, rtol=3e-7, atol=1.5e-45)


@norms
def test_drawing_twice_changes_no_level(norm):
    for bits in range(2, 9):
        coder = QSGD(bits, bucket=64, norm="max")
        first, levels = coder.quantize(VECTORS["normal"], 1)
        again = coder.quantize(coder.dequantize(first, levels), 2)[1]
        np.testing.assert_array_equal(again, levels)


@norms
@pytest.mark.parametrize("bits", range(2, 9))
def test_levels_are_what_is_packed(norm, bits):
    coder = QSGD(bits, bucket=37, norm=norm, nonfinite="propagate")
    vector = VECTORS["normal"].copy()
    vector[4] = np.nan
    found, levels = coder.quantize(vector, 9)
    assert found.size == 9
    assert levels.dtype == np.int8
    assert levels[4] == -128
    assert np.abs(np.delete(levels, 4)).max() <= coder.s
    want = coder.decode(coder.encode(vector, 9))
    np.testing.assert_array_equal(coder.dequantize(found, levels), want)


def test_the_largest_magnitude_comes_back_exactly_enough():
    for bits in (2, 4, 8):
        back = QSGD(bits, bucket=None).decode(
            QSGD(bits, bucket=None).encode([3.7, -3.7, 0])
        )
        np.testing.assert_allclose(back, [3.7, -3.7, 0], rtol=2e-7)


def test_bytes():
    assert QSGD(4).nbytes(1_000_000) == 500_000 + 4 * 3907
    for bits in range(2, 9):
        for bucket in (1, 64, 100, 512):
            for n in (0, 1, 63, 64, 65, 511, 512, 513, 1000):
                due = math.ceil(n * bits / 8) + 4 * math.ceil(n / bucket)
                assert QSGD(bits, bucket).nbytes(n) == due
    assert QSGD(2, bucket=None).nbytes(1000) == 250 + 4
    assert QSGD(2, bucket=None).nbytes(0) == 0


def test_bits_and_levels():
    assert QSGD() == QSGD(8) == QSGD(levels=127)
    assert QSGD(4) == QSGD(levels=7)
    assert (QSGD(levels=4).bits, QSGD(levels=3).bits, QSGD(levels=1).bits) == (4, 3, 2)
    for coder in (QSGD(3, 5, "l2"), QSGD(levels=9, bucket=None)):
        assert from_wire(4, coder.settings) == coder


def test_one_setting_can_be_replaced():
    assert replace(QSGD(), bits=4) == QSGD(bits=4) == QSGD(4)
    assert replace(QSGD(), bits=4).s == 7
    assert replace(QSGD(), levels=5) == QSGD(levels=5)
    assert replace(QSGD(levels=5), bucket=64) == QSGD(levels=5, bucket=64)
    assert repr(QSGD(bits=4)) == (
        "QSGD(bits=4, bucket=256, norm='max', levels=None, coder=None, reduced_bits=None)"
    )


def test_bits_that_contradict_the_levels():
    assert QSGD(bits=4, levels=5) == QSGD(levels=5)
    for bits, levels, due in ((2, 100, 8), (6, 5, 4)):
        with pytest.raises(ValueError, match=f"bits must be {due} for {levels} levels"):
            QSGD(bits=bits, levels=levels)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"bits": 0}, "bits must be from 2 to 8, got 0"),
        ({"bits": 1}, "bits must be from 2 to 8"),
        ({"bits": 9}, "bits must be from 2 to 8"),
        ({"levels": 0}, "levels must be from 1 to 127, got 0"),
        ({"levels": 128}, "levels must be from 1 to 127"),
        ({"bucket": 0}, "bucket must be from 1"),
        ({"bucket": -5}, "bucket must be from 1"),
        ({"bucket": 2**32}, "bucket must be from 1"),
        ({"norm": "l1"}, "norm must be 'max' or 'l2', got 'l1'"),
    ],
)
def test_bad_arguments(wrong, why):
    with pytest.raises(ValueError, match=why):
        QSGD(**wrong)


@pytest.mark.parametrize("settings", ["0007000000000000", "0907000000000000"])
def test_bad_settings(settings):
    with pytest.raises(ValueError, match="QSGD"):
        from_wire(4, bytes.fromhex(settings))
    for bad in ("0400000000000000", "0407050000000000", "0503000000000000"):
        with pytest.raises(ValueError, match="QSGD"):
            from_wire(4, bytes.fromhex(bad))


def test_a_bucket_with_an_infinity():
    vector = np.ones(40, np.float32)
    vector[[2, 3]] = np.inf, -np.inf
    coder = QSGD(4, bucket=20, nonfinite="propagate")
    back = coder.decode(coder.encode(vector))
    assert np.isnan(back[[2, 3]]).all()
    assert (np.delete(back, [2, 3]) == 1).all()


def test_a_norm_beyond_float32_is_the_largest_float():
    coder = QSGD(8, bucket=None, norm="l2")
    vector = np.full(300, 3e38, np.float32)
    back = np.array([coder.decode(coder.encode(vector, seed)) for seed in range(300)])
    assert np.isfinite(back).all()
    assert abs(back.mean(dtype=np.float64) / 3e38 - 1) < 1e-3


def test_denormal_and_huge_buckets():
    for unit in (1e-45, 1e-44, 1e-40, 1e-38, 1e36, 3e38):
        vector = np.array([1, -1, 0.5, 0], np.float64) * unit
        for coder in (QSGD(8), QSGD(2), QSGD(4, norm="l2")):
            narrow = vector.astype(np.float32)
            if coder.norm == "l2" and unit == 3e38:
                continue  # its length is no float32
            back = coder.decode(coder.encode(narrow, 1))
            norm = NORMS[coder.norm](narrow.astype(np.float64))
            assert np.isfinite(back).all()
            assert (np.abs(back - narrow.astype(float)) <= norm / coder.s + 1.5e-45).all()


def test_sums_may_have_more_bits():
    coarse = QSGD(2, bucket=64, reduced_bits=4)
    assert coarse.for_reduced(8) == QSGD(4, bucket=64)
    assert QSGD(2).for_reduced(8) == QSGD(2)
    vectors = [
        np.random.default_rng(r).standard_normal(3000).astype("f4") for r in range(4)
    ]
    exact = np.sum(vectors, axis=0)

    def errors(quantize):
        def work(comm):
            return comm.allreduce(
                vectors[comm.rank], algorithm="dsar_split_allgather", quantize=quantize
            )

        return [np.mean(np.square(x - exact)) for x in sparcml.launch(work, 4)]

    finer, same = errors(coarse), errors(QSGD(2, bucket=64))
    assert len(set(finer)) == 1
    assert finer[0] < 0.7 * same[0]
    with pytest.raises(ValueError, match="reduced_bits must be from 2 to 8 or None, got 9"):
        QSGD(2, reduced_bits=9)
    with pytest.raises(ValueError, match="reduced_bits must be None with levels, got 4"):
        QSGD(levels=2, reduced_bits=4)


def test_unknown_coders_are_refused():
    with pytest.raises(
        ValueError, match="coder must be one of None, 'elias', 'rice', got 'ans'"
    ):
        QSGD(4, coder="ans")
    settings = QSGD(4, coder="elias").settings
    with pytest.raises(ValueError, match="coder 3 is unknown"):
        QSGD.from_wire(4, settings[:3] + b"\x03" + settings[4:])
