"""Ok-Topk: the largest entries of the result, and `seen` of each rank."""

import threading

import numpy as np
import pytest

import sparcml
from sparcml import QSGD, Communicator, Half, Stream, WireError, wire
from sparcml.transport import ThreadGroup, ThreadTransport

from .. import laws, rosters

RANKS = rosters.RANKS[1:]


def stream(rng, size, k, block=1, dtype=np.float32):
    """Return a stream of integers with many magnitudes, so that hardly any are equal."""
    indices = np.sort(rng.choice(size // block, k, replace=False))
    values = rng.integers(1, 1 << 20, k * block) * rng.choice([-1, 1], k * block)
    return Stream(size, indices, values.astype(dtype), block=block)


def largest(total, k, block=1):
    """Return the vector with only its k largest blocks, and all that are equal to them."""
    rows = total.reshape(-1, block)
    sizes = np.linalg.norm(rows.astype(np.float64), axis=1)
    selected = (sizes >= np.sort(sizes)[-k]) & (sizes > 0)
    return np.where(selected[:, None], rows, 0).reshape(-1)


def reduce_to_largest(comm, x, **options):
    return comm.allreduce(x, algorithm="oktopk", **options)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("block", [1, 8])
@pytest.mark.parametrize("ranks", RANKS)
def test_the_k_largest_entries_and_their_contributions(ranks, block, dtype):
    size, k = 4000 * block, 150
    rngs = [np.random.default_rng(r) for r in range(ranks)]
    inputs = [stream(rng, size, k - 7 * r, block, dtype) for r, rng in enumerate(rngs)]
    dense = [x.to_dense() for x in inputs]
    expected = largest(np.sum(dense, axis=0), k, block)
    results = sparcml.launch(
        lambda c: reduce_to_largest(c, inputs[c.rank], return_seen=True), ranks
    )
    selected = np.repeat(expected.reshape(-1, block).any(axis=1), block)
    for (total, seen), own in zip(results, dense, strict=True):
        np.testing.assert_array_equal(total.to_dense(), expected)
        assert (total.nnz, total.block, total.dtype) == (k, block, dtype)
        np.testing.assert_array_equal(seen.to_dense(), np.where(selected, own, 0))
        assert not np.setdiff1d(seen.indices, total.indices).size
    np.testing.assert_array_equal(sum(s.to_dense() for _, s in results), expected)


def test_the_mean_and_other_containers():
    torch = pytest.importorskip("torch")
    x = np.zeros(100, np.float32)
    x[[3, 50]] = [4, 1]

    def body(comm):
        own = np.roll(x, 30 * comm.rank)
        mean, seen = reduce_to_largest(comm, own, op="mean", return_seen=True)
        tensor = reduce_to_largest(comm, torch.from_numpy(own))
        later = comm.iallreduce(own, algorithm="oktopk", return_seen=True).wait()
        out = np.empty_like(x)
        assert reduce_to_largest(comm, own, out=out) is out
        return mean, seen, tensor.numpy(), later, out

    for rank, (mean, seen, tensor, later, out) in enumerate(sparcml.launch(body, 2)):
        assert np.flatnonzero(mean).tolist() == [3, 33]
        assert mean[[3, 33]].tolist() == [2, 2]
        assert np.flatnonzero(seen).tolist() == [3 + 30 * rank]
        for other in (tensor, later[0], out):
            np.testing.assert_array_equal(other, 2 * mean)
        np.testing.assert_array_equal(later[1], 2 * seen)


@pytest.mark.parametrize("op", ["min", "max", "prod"])
def test_only_sum_and_mean_are_supported(op):
    def body(comm):
        x = Stream(10, [comm.rank], [1.0])
        for call in (comm.allreduce, comm.iallreduce):
            with pytest.raises(ValueError, match=f"op must be sum or mean .*got '{op}'"):
                call(x, op=op, algorithm="oktopk")
        return comm.allreduce(x).nnz

    assert sparcml.launch(body, 2) == [2, 2]


def test_auto_never_chooses_it_and_explain_marks_it_lossy():
    def body(comm):
        rng = np.random.default_rng(comm.rank)
        return comm.explain(stream(rng, 4_000_000, 40_000))

    explanation = sparcml.launch(body, 8)[0]
    assert "oktopk (lossy)" in str(explanation)
    estimates = {e.algorithm: e for e in explanation.estimates}
    assert [name for name, e in estimates.items() if e.lossy] == ["oktopk"]
    assert estimates["oktopk"].nbytes < estimates[explanation.choice].nbytes
    assert explanation.choice != "oktopk"
    assert "than oktopk" not in str(explanation)


@pytest.mark.parametrize("ranks", RANKS)
def test_few_entries_and_empty_ranks(ranks):
    def body(comm):
        last = comm.rank == comm.size - 1
        empty = Stream(3, [], [])
        counts = [reduce_to_largest(comm, empty).nnz]
        for size in (1, 3, 1000):
            x = Stream(size, [size - 1], [2.0]) if last else Stream(size, [], [])
            total, seen = reduce_to_largest(comm, x, return_seen=True)
            assert np.count_nonzero(seen.to_dense()) == last
            counts += [np.count_nonzero(total.to_dense()), total.to_dense()[-1]]
        return counts

    assert sparcml.launch(body, ranks) == [[0, 1, 2, 1, 2, 1, 2]] * ranks


def test_entries_that_cancel_are_not_selected():
    def body(comm):
        sign = 1 - 2 * comm.rank
        x = Stream(1000, [5, 70, 800], np.array([sign, 3, sign], np.float32))
        total, seen = reduce_to_largest(comm, x, return_seen=True)
        cancels = Stream(77, [5], np.array([sign], np.float32))
        assert [reduce_to_largest(comm, cancels).nnz for _ in range(5)] == [0] * 5
        return total.indices.tolist(), total.values.tolist(), seen.indices.tolist()

    assert sparcml.launch(body, 2) == [([70], [6], [70])] * 2


@pytest.mark.parametrize("block", [1, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_entries_that_are_not_finite_are_selected(dtype, block):
    """They do not change the threshold of the finite entries."""

    def body(comm):
        rng = np.random.default_rng(comm.rank)
        x = stream(rng, 4000 * block, 50, block, dtype)
        values = x.values.reshape(-1, block).copy()
        values[[1, 4, 9], 0] = [np.nan, np.inf, -np.inf]
        bad = Stream(x.size, x.indices, values.reshape(-1), block=block)
        with_bad = [reduce_to_largest(comm, bad) for _ in range(3)]
        tiny = np.full(block, np.finfo(dtype).smallest_subnormal, dtype)
        tiny = reduce_to_largest(comm, Stream(block * 31, [comm.rank], tiny, block=block))
        return with_bad, x.indices[[1, 4, 9]], reduce_to_largest(comm, x).nnz, tiny.nnz

    results = sparcml.launch(body, 4)
    nonfinite = np.concatenate([indices for _, indices, _, _ in results])
    for totals, _, after, tiny in results:
        for total in totals:
            finite = np.isfinite(total.values.reshape(-1, block)).all(axis=1)
            np.testing.assert_array_equal(total.indices[~finite], np.unique(nonfinite))
            assert finite.sum() == 50
        assert 25 <= after <= 62
        assert tiny == 4


def test_dense_vectors_lose_nothing():
    def body(comm):
        rng = np.random.default_rng(comm.rank)
        for _ in range(5):
            x = rng.integers(-9, 9, 500).astype(np.float32)
            y, seen = reduce_to_largest(comm, x, return_seen=True)
            np.testing.assert_array_equal(y, comm.allreduce(x))
            np.testing.assert_array_equal(seen[y != 0], x[y != 0])

    sparcml.launch(body, 3)


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_error_feedback_loses_nothing(ranks):
    """The applied updates and all residuals add up to all gradients."""
    size, k, calls = 500, 20, 40

    def body(comm):
        rng = np.random.default_rng(comm.rank)
        residual = np.zeros(size)
        total_gradient, applied = np.zeros(size), np.zeros(size)
        for _ in range(calls):
            step = rng.integers(-99, 100, size).astype(np.float64)
            total_gradient += step
            residual += step
            indices = np.sort(np.argsort(-abs(residual), kind="stable")[:k])
            x = Stream(size, indices, residual[indices])
            total, seen = reduce_to_largest(comm, x, return_seen=True)
            residual -= seen.to_dense()
            applied += total.to_dense()
        return total_gradient, applied, residual

    results = sparcml.launch(body, ranks)
    applied = results[0][1]
    assert np.count_nonzero(applied) > k
    residuals = sum(residual for _, _, residual in results)
    gradients = sum(gradient for gradient, _, _ in results)
    np.testing.assert_array_equal(gradients, applied + residuals)


@pytest.mark.parametrize("quantizer", [Half(), QSGD(8)], ids=str)
@pytest.mark.parametrize("density", [0.02, 0.3])
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_quantized_parts_add_up(ranks, density, quantizer):
    def body(comm):
        rng = np.random.default_rng(comm.rank)
        pairs = []
        for _ in range(3):
            indices = np.flatnonzero(rng.random(5000) < density)
            x = Stream(5000, indices, rng.standard_normal(len(indices)).astype("f4") ** 5)
            pairs.append(reduce_to_largest(comm, x, quantize=quantizer, return_seen=True))
        return pairs

    for calls in zip(*sparcml.launch(body, ranks), strict=True):
        total = calls[0][0]
        parts = sum(seen.to_dense().astype(np.float64) for _, seen in calls)
        np.testing.assert_allclose(parts, total.to_dense(), rtol=1e-4, atol=1e-3)
        for other, seen in calls:
            assert laws.fingerprint(other).tolist() == laws.fingerprint(total).tolist()
            assert not np.setdiff1d(np.flatnonzero(seen.to_dense()), total.indices).size


def test_hostile_payloads():
    """Law 8: malformed cuts and magnitudes, and streams in their place."""

    def error_of(target, payload):
        def replacing(self, peer, message):
            header = wire.Header.read(message)
            section = header.value_format == 255 and header.index_bytes
            if self.rank == 1 and section and (header.tag.round > 0) == (target == "sizes"):
                x = Stream(1000, [0], [1.0])
                message = wire.header_only(x, header.tag, payload)
            return ThreadTransport.isend(self, peer, message)

        hostile = type("Hostile", (ThreadTransport,), {"isend": replacing})
        group, errors = ThreadGroup(2), []
        transports = [hostile(group, rank, 2) for rank in range(2)]

        def body(rank):
            try:
                x = Stream(1000, [rank, 500], np.ones(2, np.float32))
                reduce_to_largest(Communicator(transports[rank]), x)
            except sparcml.errors.SparcmlError as error:
                errors.append(error)

        threads = [threading.Thread(target=body, args=(r,)) for r in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return " ".join(str(e) for e in errors if isinstance(e, WireError))

    assert "1 ascending cuts of 1000 blocks" in error_of(
        "cuts", np.array([1001], np.uint32)
    )
    assert "1 ascending cuts" in error_of("cuts", np.array([1, 2, 3], np.uint32))
    assert "finite magnitudes" in error_of("sizes", np.array([1, np.nan], np.float32))
    message, _ = wire.encode(Stream(9, [1], [1.0]), wire.Tag(1, 1))
    with pytest.raises(WireError, match="auxiliary payload"):
        wire.auxiliary(message, np.dtype(np.float32))
