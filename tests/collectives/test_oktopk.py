"""Ok-Topk: the largest sums, who used what of whose entries, and what calls reuse."""

import itertools
import threading

import numpy as np
import pytest

import sparcml
from sparcml import QSGD, Communicator, Half, Stream, WireError, wire
from sparcml.collectives.sparse.oktopk_state import (
    MAX_SHAPES,
    OFFSETS_EVERY,
    THRESHOLD_EVERY,
)
from sparcml.transport import ThreadGroup, ThreadTransport

from .. import laws, rosters

RANKS = rosters.RANKS[1:]


def stream(rng, size, k, block=1, dtype=np.float32):
    """Integer numbers of many magnitudes, so that hardly any are alike."""
    indices = np.sort(rng.choice(size // block, k, replace=False))
    values = rng.integers(1, 1 << 20, k * block) * rng.choice([-1, 1], k * block)
    return Stream(size, indices, values.astype(dtype), block=block)


def largest(total, k, block=1):
    """All but the k largest blocks set to zero; of equal ones all are kept."""
    rows = total.reshape(-1, block)
    sizes = np.linalg.norm(rows.astype(np.float64), axis=1)
    kept = (sizes >= np.sort(sizes)[-k]) & (sizes > 0)
    return np.where(kept[:, None], rows, 0).reshape(-1)


def reduce_to_largest(comm, x, **options):
    return comm.allreduce(x, algorithm="oktopk", **options)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("block", [1, 8])
@pytest.mark.parametrize("ranks", RANKS)
def test_the_k_largest_sums_and_who_gave_them(ranks, block, dtype):
    size, k = 4000 * block, 150
    rngs = [np.random.default_rng(r) for r in range(ranks)]
    inputs = [stream(rng, size, k - 7 * r, block, dtype) for r, rng in enumerate(rngs)]
    dense = [x.to_dense() for x in inputs]
    want = largest(np.sum(dense, axis=0), k, block)
    results = sparcml.launch(
        lambda c: reduce_to_largest(c, inputs[c.rank], return_seen=True), ranks
    )
    kept = np.repeat(want.reshape(-1, block).any(axis=1), block)
    for (total, seen), mine in zip(results, dense, strict=True):
        np.testing.assert_array_equal(total.to_dense(), want)
        assert (total.nnz, total.block, total.dtype) == (k, block, dtype)
        np.testing.assert_array_equal(seen.to_dense(), np.where(kept, mine, 0))
        assert not np.setdiff1d(seen.indices, total.indices).size
    np.testing.assert_array_equal(sum(s.to_dense() for _, s in results), want)


def test_the_mean_and_other_kinds_of_vectors():
    torch = pytest.importorskip("torch")
    x = np.zeros(100, np.float32)
    x[[3, 50]] = [4, 1]

    def body(comm):
        mine = np.roll(x, 30 * comm.rank)
        mean, seen = reduce_to_largest(comm, mine, op="mean", return_seen=True)
        tensor = reduce_to_largest(comm, torch.from_numpy(mine))
        later = comm.iallreduce(mine, algorithm="oktopk", return_seen=True).wait()
        out = np.empty_like(x)
        assert reduce_to_largest(comm, mine, out=out) is out
        return mean, seen, tensor.numpy(), later, out

    for rank, (mean, seen, tensor, later, out) in enumerate(sparcml.launch(body, 2)):
        assert np.flatnonzero(mean).tolist() == [3, 33]
        assert mean[[3, 33]].tolist() == [2, 2]
        assert np.flatnonzero(seen).tolist() == [3 + 30 * rank]
        for other in (tensor, later[0], out):
            np.testing.assert_array_equal(other, 2 * mean)
        np.testing.assert_array_equal(later[1], 2 * seen)


@pytest.mark.parametrize("op", ["min", "max", "prod"])
def test_only_sums_have_a_largest(op):
    def body(comm):
        x = Stream(10, [comm.rank], [1.0])
        for call in (comm.allreduce, comm.iallreduce):
            with pytest.raises(ValueError, match=f"requires op sum or mean, got '{op}'"):
                call(x, op=op, algorithm="oktopk")
        return comm.allreduce(x).nnz

    assert sparcml.launch(body, 2) == [2, 2]


def test_auto_never_takes_it_and_explain_says_why():
    def body(comm):
        rng = np.random.default_rng(comm.rank)
        return comm.explain(stream(rng, 4_000_000, 40_000))

    found = sparcml.launch(body, 8)[0]
    assert "oktopk (lossy)" in str(found)
    estimates = {e.algorithm: e for e in found.estimates}
    assert [name for name, e in estimates.items() if e.lossy] == ["oktopk"]
    assert estimates["oktopk"].nbytes < estimates[found.choice].nbytes
    assert found.choice != "oktopk"
    assert "than oktopk" not in str(found)


def test_calls_between_reuse_what_was_found():
    """P = 4: 2 + 3 + 2 messages, and 2 more where the threshold is computed."""

    def body(comm):
        rng = np.random.default_rng(comm.rank)
        values = stream(rng, 10_000, 200).values
        counts = []
        for _ in range(2 * THRESHOLD_EVERY + 2):
            indices = np.sort(rng.choice(10_000, 200, replace=False))
            comm.stats.reset()
            reduce_to_largest(comm, Stream(10_000, indices, rng.permutation(values)))
            counts.append((comm.stats.messages, comm.stats.bytes))
        return counts

    for counts in sparcml.launch(body, 4):
        messages = [m for m, _ in counts]
        assert messages == ([10] + [8] * (THRESHOLD_EVERY - 1)) * 2 + [10, 8]
        exact = [counts[at][1] for at in (0, THRESHOLD_EVERY)]
        assert max(n for m, n in counts if m == 8) < min(exact)


def entries_received(ranks, inputs, algorithm):
    """How many entries each rank gets from others to add, in the second call."""

    class Recording(ThreadTransport):
        def isend(self, peer, message):
            got[peer] += wire.Header.read(message).nnz * (
                wire.Header.read(message).tag.round == split
                and wire.message_length(message) == len(message)
                and wire.Header.read(message).value_format == 0
            )
            return super().isend(peer, message)

    split = (ranks - 1).bit_length() if algorithm == "oktopk" else 0
    got = [0] * ranks
    lock = threading.Barrier(ranks)
    group = ThreadGroup(ranks)
    transports = [Recording(group, rank, 10) for rank in range(ranks)]

    def body(rank):
        comm = Communicator(transports[rank])
        comm.allreduce(inputs[rank], algorithm=algorithm)
        lock.wait()
        if rank == 0:
            got[:] = [0] * ranks
        lock.wait()
        comm.allreduce(inputs[rank], algorithm=algorithm)

    threads = [threading.Thread(target=body, args=(r,)) for r in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return got


@pytest.mark.parametrize("ranks", [2, 4, 7, 8])
def test_regions_follow_the_entries(ranks):
    """All entries lie in the first hundredth: equal ranges would give rank 0 all."""
    size, k = 1_000_000, 2000
    inputs = []
    for rank in range(ranks):
        rng = np.random.default_rng(rank)
        indices = np.sort(rng.choice(size // 100, k, replace=False))
        inputs.append(Stream(size, indices, rng.standard_normal(k).astype(np.float32)))
    share = k * (ranks - 1) / ranks
    uniform = entries_received(ranks, inputs, "ssar_split_allgather")
    assert uniform == [k * (ranks - 1)] + [0] * (ranks - 1)
    balanced = entries_received(ranks, inputs, "oktopk")
    assert sum(balanced) == pytest.approx(ranks * share, rel=0.05)
    assert max(balanced) < 1.15 * share
    assert min(balanced) > 0.85 * share


@pytest.mark.parametrize("ranks", [2, 4, 8, 16])
def test_the_bound_of_the_paper(ranks):
    """At most 6 k (P - 1) / P words, two an entry, in calls that reuse."""
    size, k = 1 << 18, 1 << 12
    totals = [0] * ranks

    class Recording(ThreadTransport):
        def isend(self, peer, message):
            rest = message
            while len(rest):
                header, length = wire.Header.read(rest), wire.message_length(rest)
                totals[self.rank] += header.nnz * (header.value_format == 0)
                rest = rest[length:]
            return super().isend(peer, message)

    group = ThreadGroup(ranks)
    transports = [Recording(group, rank, 20) for rank in range(ranks)]
    calls = 8

    def body(rank):
        comm = Communicator(transports[rank])
        rng = np.random.default_rng(rank)
        for _ in range(calls):
            indices = np.sort(rng.choice(size, k, replace=False))
            values = rng.standard_normal(k).astype(np.float32)
            reduce_to_largest(comm, Stream(size, indices, values))

    threads = [threading.Thread(target=body, args=(r,)) for r in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for entries in totals:
        assert 2 * entries / calls <= 6 * k * (ranks - 1) / ranks
        assert entries / calls == pytest.approx(2 * k * (ranks - 1) / ranks, rel=0.15)


@pytest.mark.parametrize("ranks", RANKS)
def test_equal_magnitudes_are_all_kept_again_and_again(ranks):
    def body(comm):
        at = np.arange(0, 9000, 90) + comm.rank
        x = Stream(9000, at, np.where(at % 2, 1, -1).astype(np.float32))
        return [reduce_to_largest(comm, x).nnz for _ in range(40)]

    assert sparcml.launch(body, ranks) == [[100 * ranks] * 40] * ranks


@pytest.mark.parametrize("ranks", RANKS)
def test_few_entries_and_ranks_without_any(ranks):
    def body(comm):
        last = comm.rank == comm.size - 1
        none = Stream(3, [], [])
        found = [reduce_to_largest(comm, none).nnz]
        for size in (1, 3, 1000):
            x = Stream(size, [size - 1], [2.0]) if last else Stream(size, [], [])
            total, seen = reduce_to_largest(comm, x, return_seen=True)
            assert np.count_nonzero(seen.to_dense()) == last
            found += [np.count_nonzero(total.to_dense()), total.to_dense()[-1]]
        return found

    assert sparcml.launch(body, ranks) == [[0, 1, 2, 1, 2, 1, 2]] * ranks


def test_sums_of_zero_are_left_with_their_ranks():
    def body(comm):
        sign = 1 - 2 * comm.rank
        x = Stream(1000, [5, 70, 800], np.array([sign, 3, sign], np.float32))
        total, seen = reduce_to_largest(comm, x, return_seen=True)
        gone = Stream(77, [5], np.array([sign], np.float32))
        assert [reduce_to_largest(comm, gone).nnz for _ in range(5)] == [0] * 5
        return total.indices.tolist(), total.values.tolist(), seen.indices.tolist()

    assert sparcml.launch(body, 2) == [([70], [6], [70])] * 2


@pytest.mark.parametrize("block", [1, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_not_finite_is_kept_and_no_threshold(dtype, block):
    """Also next to it: the threshold stays that of the finite ones."""

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
    due = np.concatenate([places for _, places, _, _ in results])
    for found, _, after, tiny in results:
        for total in found:
            finite = np.isfinite(total.values.reshape(-1, block)).all(axis=1)
            np.testing.assert_array_equal(total.indices[~finite], np.unique(due))
            assert finite.sum() == 50
        assert 25 <= after <= 62
        assert tiny == 4


def test_dense_vectors_lose_nothing_ever():
    def body(comm):
        rng = np.random.default_rng(comm.rank)
        for _ in range(5):
            x = rng.integers(-9, 9, 500).astype(np.float32)
            y, seen = reduce_to_largest(comm, x, return_seen=True)
            np.testing.assert_array_equal(y, comm.allreduce(x))
            np.testing.assert_array_equal(seen[y != 0], x[y != 0])

    sparcml.launch(body, 3)


@pytest.mark.parametrize("drift", [0.995, 1.005, 0.95])
@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_a_threshold_follows_data_that_drifts(ranks, drift):
    """Slower than it is scaled, always; if faster, never far off twice in a row."""
    k, calls = 300, 70

    def body(comm):
        rng = np.random.default_rng(comm.rank)
        found = []
        for call in range(calls):
            indices = np.sort(rng.choice(20_000, k, replace=False))
            values = rng.standard_normal(k) * drift**call
            total = reduce_to_largest(comm, Stream(20_000, indices, values))
            found.append(total)
        return found

    results = sparcml.launch(body, ranks)
    near = [k / 2 <= total.nnz <= 2 * k for total in results[0]]
    assert all(near) or drift == 0.95
    assert all(a or b for a, b in itertools.pairwise(near))
    for totals in zip(*results, strict=True):
        for total in totals:
            np.testing.assert_array_equal(
                laws.fingerprint(total), laws.fingerprint(totals[0])
            )


@pytest.mark.parametrize("factor", [1000.0, 0.001])
def test_a_hopeless_threshold_is_given_up(factor):
    k = 100

    def body(comm):
        rng = np.random.default_rng(comm.rank)
        x = stream(rng, 10_000, k)
        scaled = Stream(x.size, x.indices, x.values * np.float32(factor))
        calls = [x, x, scaled, scaled, scaled]
        return [reduce_to_largest(comm, each).nnz for each in calls]

    for first, second, jump, *rest in sparcml.launch(body, 4):
        assert (first, second) == (k, k)
        assert jump > 2 * k if factor > 1 else jump < k / 2
        assert rest == [k, k]


def test_another_k_is_another_threshold():
    def body(comm):
        rng = np.random.default_rng(comm.rank)
        return [reduce_to_largest(comm, stream(rng, 10_000, k)).nnz for k in (100, 200, 50)]

    assert sparcml.launch(body, 3) == [[100, 200, 50]] * 3


def test_vectors_of_other_kinds_and_duplicates_have_thresholds_of_their_own():
    def body(comm):
        def history(ours, scales):
            rng = np.random.default_rng(comm.rank)
            for size, scale in scales:
                x = stream(rng, size, size // 100)
                x = Stream(size, x.indices, x.values * np.float32(scale))
                total = reduce_to_largest(ours, x)
                assert size // 200 <= total.nnz <= size // 50
                yield laws.fingerprint(total)

        mixed = list(itertools.islice(itertools.cycle([(10_000, 1), (20_000, 99)]), 40))
        with comm.duplicate() as fresh, comm.duplicate() as fresher:
            for one in (comm, fresh):
                list(history(one, mixed))
            a = list(history(fresher, mixed[:6]))
        with comm.duplicate() as fresh:
            b = list(history(fresh, mixed[:6]))
        np.testing.assert_array_equal(a, b)

    sparcml.launch(body, 3)


@pytest.mark.slow
def test_only_so_many_kinds_are_remembered():
    def body(comm):
        for size in range(1, MAX_SHAPES + 50):
            reduce_to_largest(comm, Stream(size, [0], [1.0]))
        return len(comm._session._persistent["oktopk"])

    assert sparcml.launch(body, 2) == [MAX_SHAPES, MAX_SHAPES]


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_error_feedback_loses_nothing(ranks):
    """What was applied and what is still owed is all that was ever asked for."""
    size, k, calls = 500, 20, 40

    def body(comm):
        rng = np.random.default_rng(comm.rank)
        owed = np.zeros(size)
        asked, applied = np.zeros(size), np.zeros(size)
        for _ in range(calls):
            step = rng.integers(-99, 100, size).astype(np.float64)
            asked += step
            owed += step
            mine = np.sort(np.argsort(-abs(owed), kind="stable")[:k])
            x = Stream(size, mine, owed[mine])
            total, seen = reduce_to_largest(comm, x, return_seen=True)
            owed -= seen.to_dense()
            applied += total.to_dense()
        return asked, applied, owed

    results = sparcml.launch(body, ranks)
    applied = results[0][1]
    assert np.count_nonzero(applied) > k
    owed = sum(left for _, _, left in results)
    np.testing.assert_array_equal(sum(a for a, _, _ in results), applied + owed)


@pytest.mark.parametrize("coder", [Half(), QSGD(8)], ids=str)
@pytest.mark.parametrize("density", [0.02, 0.3])
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_quantized_parts_add_up(ranks, density, coder):
    def body(comm):
        rng = np.random.default_rng(comm.rank)
        found = []
        for _ in range(3):
            indices = np.flatnonzero(rng.random(5000) < density)
            x = Stream(5000, indices, rng.standard_normal(len(indices)).astype("f4") ** 5)
            found.append(reduce_to_largest(comm, x, quantize=coder, return_seen=True))
        return found

    for calls in zip(*sparcml.launch(body, ranks), strict=True):
        total = calls[0][0]
        parts = sum(seen.to_dense().astype(np.float64) for _, seen in calls)
        np.testing.assert_allclose(parts, total.to_dense(), rtol=1e-4, atol=1e-3)
        for other, seen in calls:
            assert laws.fingerprint(other).tolist() == laws.fingerprint(total).tolist()
            assert not np.setdiff1d(np.flatnonzero(seen.to_dense()), total.indices).size


def test_hostile_numbers():
    """Law 8: cuts that are no cuts, magnitudes that are none, streams in their place."""

    def said(kind, numbers):
        def replacing(self, peer, message):
            header = wire.Header.read(message)
            section = header.value_format == 255 and header.index_bytes
            if self.rank == 1 and section and (header.tag.round > 0) == (kind == "sizes"):
                x = Stream(1000, [0], [1.0])
                message = wire.header_only(x, header.tag, numbers)
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

    assert "1 ascending cuts of 1000 blocks" in said("cuts", np.array([1001], np.uint32))
    assert "1 ascending cuts" in said("cuts", np.array([1, 2, 3], np.uint32))
    assert "finite magnitudes" in said("sizes", np.array([1, np.nan], np.float32))
    message, _ = wire.encode(Stream(9, [1], [1.0]), wire.Tag(1, 1))
    with pytest.raises(WireError, match="auxiliary payload"):
        wire.auxiliary(message, np.dtype(np.float32))


def test_regions_are_set_anew():
    """What lies elsewhere after 64 calls is spread evenly again."""

    def body(comm):
        rng = np.random.default_rng(comm.rank)
        for call in range(OFFSETS_EVERY + 1):
            start = 0 if call < 5 else 90_000
            indices = start + np.sort(rng.choice(9000, 400, replace=False))
            reduce_to_largest(comm, Stream(100_000, indices, np.ones(400, np.float32)))
            (known,) = comm._session._persistent["oktopk"].values()
            if call in (0, OFFSETS_EVERY - 1, OFFSETS_EVERY):
                yield list(known.offsets)

    for first, last, anew in sparcml.launch(lambda c: list(body(c)), 3):
        assert first == last
        assert first[1:-1] == pytest.approx([3000, 6000], abs=400)
        assert anew[1:-1] == pytest.approx([93_000, 96_000], abs=400)
        assert (anew[0], anew[-1]) == (0, 100_000)
