"""Majority votes and shared scales: reductions of quantized values only."""

import numpy as np
import pytest

import sparcml
from sparcml import Integer, Sign, Stream, TernGrad
from sparcml.collectives import ALLREDUCES

from .. import rosters
from .test_quantized import QUANTIZING

VOTING = [name for name in QUANTIZING if not ALLREDUCES[name].quantized_only]

RANKS = tuple(range(1, 9))


def gradients(ranks, size=3001):
    """Return vectors of few magnitudes and zeros, so that ties occur."""
    rng = np.random.default_rng(ranks)
    return rng.integers(-3, 4, (ranks, size)).astype(np.float32)


def signs(x):
    return np.where(x >= 0, np.float32(1), np.float32(-1))


def run(inputs, **options):
    def body(comm):
        return comm.allreduce(inputs[comm.rank], return_seen=True, **options)

    return sparcml.launch(body, len(inputs))


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("algorithm", VOTING)
def test_a_majority_vote(algorithm, ranks):
    inputs = gradients(ranks)
    results = run(inputs, algorithm=algorithm, quantize=Sign(scale=1.0))
    want = signs(signs(inputs).sum(axis=0))  # a tie is positive
    if ranks == 1:
        want = inputs[0]  # a single rank quantizes nothing
    for total, _ in results:
        np.testing.assert_array_equal(total, want)
    np.testing.assert_array_equal(np.sum([seen for _, seen in results], axis=0), want)


@pytest.mark.parametrize("flippers", [1, 2, 3])
def test_a_minority_with_flipped_signs_changes_nothing(flippers):
    honest = np.random.default_rng(1).standard_normal(2000).astype(np.float32)
    inputs = [-100 * honest if rank < flippers else honest for rank in range(7)]
    for total, _ in run(inputs, quantize=Sign(scale=1.0)):
        np.testing.assert_array_equal(total, signs(honest))
    inputs = [-honest if rank < 4 else honest for rank in range(7)]
    for total, _ in run(inputs, quantize=Sign(scale=1.0)):
        np.testing.assert_array_equal(total, -signs(honest))


def test_a_vote_costs_one_bit_per_value_in_each_half():
    inputs = gradients(4, 1 << 16)

    def body(comm):
        quantizer = Sign(scale=1.0)
        comm.stats.reset()
        comm.allreduce(
            inputs[comm.rank], algorithm="dsar_split_allgather", quantize=quantizer
        )
        return comm.stats.bytes

    overhead = 32 + 8 + 4  # header, settings and scale of a message
    for sent in sparcml.launch(body, 4):
        assert sent == 3 * 2 * ((1 << 16) // 4 // 8 + overhead)


def test_nan_in_a_vote_is_nan_in_its_range():
    inputs = gradients(3)
    inputs[1, 5] = np.nan
    vote = Sign(scale=1.0, nonfinite="propagate")
    for total, _ in run(inputs, algorithm="ssar_split_allgather", quantize=vote):
        assert np.isnan(total[5])
        np.testing.assert_array_equal(total[1001:], signs(signs(inputs).sum(axis=0))[1001:])


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("algorithm", VOTING)
@pytest.mark.parametrize("scale", [2.0, 0.3])
def test_ternary_values_of_one_scale_add_up_exactly(algorithm, ranks, scale):
    quantizer = TernGrad(scale=scale)
    inputs = np.random.default_rng(7).standard_normal((ranks, 3001)).astype(np.float32)
    results = run(inputs, algorithm=algorithm, quantize=quantizer)
    if ranks == 1:
        np.testing.assert_array_equal(results[0][0], inputs[0])
        return
    total = results[0][0]
    times = np.rint(total / np.float32(scale))
    assert np.abs(times).max() <= ranks
    np.testing.assert_array_equal(total, times.astype(np.float32) * np.float32(scale))
    parts = np.array([seen for _, seen in results])
    # Only the ranks' own vectors were quantized: each part is -1, 0 or 1 times the scale.
    rounded = np.rint(parts / np.float32(scale))
    np.testing.assert_allclose(parts, rounded * scale, atol=1e-6 * scale)
    assert np.abs(rounded).max() <= 1
    np.testing.assert_array_equal(rounded.sum(axis=0), times)
    for other, _ in results:
        np.testing.assert_array_equal(other, total)


def test_reduced_ternary_values_take_few_bits():
    quantizer = TernGrad(scale=1.0)
    assert quantizer.for_reduced(8) == Integer(1.0, 8)
    assert TernGrad().for_reduced(8) == TernGrad()
    assert Sign(scale=1.0).for_reduced(8) == Sign(scale=1.0)
    assert Integer(1.0, 8).nbytes(8) == 5
    inputs = gradients(4, 1 << 16)

    def body(comm):
        comm.stats.reset()
        comm.allreduce(
            inputs[comm.rank], algorithm="dsar_split_allgather", quantize=quantizer
        )
        return comm.stats.bytes

    share = (1 << 16) // 4
    up, down = share * 2 // 8 + 4, share * 4 // 8 + 8  # 2 bits, and log2(2 * 4 + 1)
    for sent in sparcml.launch(body, 4):
        assert sent <= 3 * (32 + up + 32 + down)


def test_ranks_without_an_entry_do_not_vote():
    def body(comm):
        x = Stream(
            1000, [3, 500, 900], np.array([-2, 5, -1 if comm.rank else 1], np.float32)
        )
        total = comm.allreduce(x, "sum", "ssar_split_allgather", Sign(scale=1.0))
        return total.to_dense()

    want = np.zeros(1000, np.float32)
    want[[3, 500, 900]] = -1, 1, -1
    for total in sparcml.launch(body, 3):
        np.testing.assert_array_equal(total, want)


@pytest.mark.parametrize("ranks", rosters.RANKS)
@pytest.mark.parametrize("algorithm", VOTING)
def test_the_owner_accounts_for_quantizing_the_result(algorithm, ranks):
    """With error feedback on every rank, nothing is lost over the steps."""
    rng = np.random.default_rng(9)
    gradient = rng.standard_normal((20, ranks, 500)).astype(np.float32)

    def body(comm):
        residual, applied = np.zeros(500, np.float32), np.zeros(500)
        for step in gradient:
            corrected = residual + step[comm.rank]
            total, seen = comm.allreduce(
                corrected, algorithm=algorithm, quantize=sparcml.OneBit(), return_seen=True
            )
            residual, applied = corrected - seen, applied + total
        return residual, applied

    results = sparcml.launch(body, ranks)
    left = np.sum([residual for residual, _ in results], axis=0, dtype=np.float64)
    everything = gradient.sum(axis=(0, 1), dtype=np.float64)
    np.testing.assert_allclose(results[0][1] + left, everything, atol=1e-3)


def test_votes_are_not_counted_by_an_algorithm_that_quantizes_once():
    with pytest.raises(
        ValueError, match=r"must not be ssar_allgather with Sign\(.*; use auto"
    ):
        run(gradients(2), algorithm="ssar_allgather", quantize=Sign(scale=1.0))
