"""Quantized allreduces: the same bits on all ranks, and `seen` adds up to the result."""

import numpy as np
import pytest

import sparcml
from sparcml import QSGD, Half, OneBit, Sign, Stream
from sparcml.collectives import ALLREDUCES

from .. import laws, rosters

QUANTIZERS = (Half(), Half("bfloat16"), QSGD(8), QSGD(8, bucket=100))
QUANTIZING = tuple(
    name for name in rosters.LOSSLESS if ALLREDUCES[name].supports_quantization
)


def vectors(ranks, density=0.05, size=20_000):
    for rank in range(ranks):
        rng = np.random.default_rng(rank)
        indices = np.flatnonzero(rng.random(size) < density)
        yield Stream(size, indices, rng.standard_normal(len(indices)).astype(np.float32))


@pytest.mark.parametrize("ranks", rosters.RANKS)
@pytest.mark.parametrize("quantizer", QUANTIZERS, ids=str)
@pytest.mark.parametrize("algorithm", ["auto", *QUANTIZING])
def test_all_ranks_agree_and_seen_adds_up(algorithm, quantizer, ranks):
    inputs = list(vectors(ranks))

    def body(comm):
        x = inputs[comm.rank]
        return comm.allreduce(x, algorithm=algorithm, quantize=quantizer, return_seen=True)

    results = sparcml.launch(body, ranks)
    first = results[0][0]
    for total, _ in results:
        np.testing.assert_array_equal(laws.fingerprint(total), laws.fingerprint(first))
    parts = np.sum([seen.to_dense().astype(np.float64) for _, seen in results], axis=0)
    np.testing.assert_allclose(parts, first.to_dense(), rtol=1e-5, atol=1e-5)
    exact = np.sum([x.to_dense() for x in inputs], axis=0)
    largest = max(abs(exact).max(), 4.0)
    assert abs(first.to_dense() - exact).max() <= (ranks + 1) * largest / 100
    if ranks > 1:
        assert (first.to_dense() != exact).any()


@pytest.mark.parametrize("ranks", rosters.RANKS)
@pytest.mark.parametrize(
    "quantizer", [OneBit(), OneBit(50, "mean"), Sign(), Sign(7)], ids=str
)
@pytest.mark.parametrize("algorithm", ["auto", *QUANTIZING])
@pytest.mark.parametrize("density", [0.05, 1])
def test_seen_adds_up_with_one_bit(algorithm, quantizer, ranks, density):
    inputs = list(vectors(ranks, density, 3000))

    def body(comm):
        x = inputs[comm.rank]
        return comm.allreduce(x, algorithm=algorithm, quantize=quantizer, return_seen=True)

    results = sparcml.launch(body, ranks)
    first = results[0][0]
    for total, _ in results:
        np.testing.assert_array_equal(laws.fingerprint(total), laws.fingerprint(first))
    parts = np.sum([seen.to_dense().astype(np.float64) for _, seen in results], axis=0)
    np.testing.assert_allclose(parts, first.to_dense(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("algorithm", QUANTIZING)
def test_seen_of_a_dense_range(algorithm):
    """The vectors are sparse, but the first rank's range of them is full."""

    def body(comm):
        x = Stream(10_000, np.arange(2500), np.full(2500, 1.0 + comm.rank, np.float32))
        total, seen = comm.allreduce(x, "sum", algorithm, Half(), return_seen=True)
        return total.to_dense(), seen.to_dense()

    results = sparcml.launch(body, 4)
    np.testing.assert_array_equal(sum(seen for _, seen in results), results[0][0])


@pytest.mark.parametrize("algorithm", QUANTIZING)
def test_bytes_on_the_wire_shrink(algorithm):
    inputs = list(vectors(4))

    def body(comm):
        sent = []
        for quantizer in (None, Half(), QSGD(8)):
            comm.stats.reset()
            comm.allreduce(inputs[comm.rank], algorithm=algorithm, quantize=quantizer)
            sent.append(comm.stats.bytes)
        return sent

    for raw, half, qsgd in sparcml.launch(body, 4):
        assert half < 0.65 * raw
        assert qsgd < 0.45 * raw


def test_lossless_algorithms_reject_a_quantizer():
    def body(comm):
        x = next(vectors(1))
        for name in sorted(set(rosters.LOSSLESS) - set(QUANTIZING)):
            with pytest.raises(ValueError, match="algorithm must be auto, ssar_split"):
                comm.allreduce(x, algorithm=name, quantize=Half())
        with pytest.raises(TypeError, match="quantize must be a quantizer"):
            comm.allreduce(x, quantize="float16")
        with pytest.raises(ValueError, match="op must be sum or mean with return_seen"):
            comm.allreduce(x, op="max", return_seen=True)
        total, seen = comm.allreduce(x, algorithm="ssar_recursive_double", return_seen=True)
        np.testing.assert_array_equal(seen.to_dense(), x.to_dense())
        return total

    sparcml.launch(body, 2)


def test_seen_of_a_mean_adds_up():
    inputs = list(vectors(3))

    def body(comm):
        return comm.allreduce(inputs[comm.rank], "mean", quantize=QSGD(8), return_seen=True)

    results = sparcml.launch(body, 3)
    parts = sum(seen.to_dense() for _, seen in results)
    np.testing.assert_allclose(parts, results[0][0].to_dense(), rtol=1e-5, atol=1e-6)


def test_out_receives_the_result():
    torch = pytest.importorskip("torch")

    def body(comm):
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        out = np.empty_like(x)
        assert comm.allreduce(x, out=out) is out
        assert comm.allreduce(x, out=x) is x
        part = np.ones(3, np.float32)
        total, seen = comm.allreduce(part, out=part, return_seen=True)
        assert total is part
        assert (total[0], seen[0]) == (comm.size, 1)
        tensor = torch.ones(4)
        comm.allreduce(tensor, out=tensor)
        for bad, why in (
            (np.empty(5, np.float32), "6 values of float32, got 5"),
            (np.empty(6), "got 6 of float64"),
            (np.empty((6, 2), np.float32)[:, 0], "contiguous and writable"),
        ):
            with pytest.raises(ValueError, match=why):
                comm.allreduce(x, out=bad)
        with pytest.raises(TypeError, match="out must be a NumPy array"):
            comm.allreduce(x, out=[1, 2])
        return out, x, tensor

    for out, x, tensor in sparcml.launch(body, 3):
        np.testing.assert_array_equal(out, 3 * np.arange(6).reshape(2, 3))
        np.testing.assert_array_equal(x, out)
        assert tensor.tolist() == [3, 3, 3, 3]
