"""State of Ok-Topk between calls: ranges that follow the entries, reused thresholds."""

import itertools
import threading

import numpy as np
import pytest
from oktopk import MAX_SHAPES, OFFSETS_EVERY, THRESHOLD_EVERY

import sparcml
from sparcml import Communicator, Stream, wire
from sparcml.transport import ThreadGroup, ThreadTransport

from .. import laws
from .test_oktopk import RANKS, reduce_to_largest, stream


def test_calls_in_between_reuse_the_threshold():
    """P = 4: 2 + 3 + 3 messages, and 2 more where the threshold is computed."""

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
    """Return the entries that each rank receives for its range, in the second call."""

    class Recording(ThreadTransport):
        def isend(self, peer, message):
            received[peer] += wire.Header.read(message).nnz * (
                wire.Header.read(message).tag.round == split
                and wire.message_length(message) == len(message)
                and wire.Header.read(message).value_format == 0
            )
            return super().isend(peer, message)

    split = (ranks - 1).bit_length() if algorithm == "oktopk" else 0
    received = [0] * ranks
    lock = threading.Barrier(ranks)
    group = ThreadGroup(ranks)
    transports = [Recording(group, rank, 10) for rank in range(ranks)]

    def body(rank):
        comm = Communicator(transports[rank])
        comm.allreduce(inputs[rank], algorithm=algorithm)
        lock.wait()
        if rank == 0:
            received[:] = [0] * ranks
        lock.wait()
        comm.allreduce(inputs[rank], algorithm=algorithm)

    threads = [threading.Thread(target=body, args=(r,)) for r in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return received


@pytest.mark.parametrize("ranks", [2, 4, 7, 8])
def test_ranges_follow_the_entries(ranks):
    """All entries lie in the first hundredth: with equal ranges rank 0 would own all."""
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
    """At most 6 k (P - 1) / P words, two per entry, in calls that reuse the threshold."""
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
def test_equal_magnitudes_are_all_selected_in_every_call(ranks):
    def body(comm):
        at = np.arange(0, 9000, 90) + comm.rank
        x = Stream(9000, at, np.where(at % 2, 1, -1).astype(np.float32))
        return [reduce_to_largest(comm, x).nnz for _ in range(40)]

    assert sparcml.launch(body, ranks) == [[100 * ranks] * 40] * ranks


@pytest.mark.parametrize("drift", [0.995, 1.005, 0.95])
@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_a_threshold_follows_drifting_data(ranks, drift):
    """A slow drift always; a fast one is never far off in two calls in a row."""
    k, calls = 300, 70

    def body(comm):
        rng = np.random.default_rng(comm.rank)
        totals = []
        for call in range(calls):
            indices = np.sort(rng.choice(20_000, k, replace=False))
            values = rng.standard_normal(k) * drift**call
            total = reduce_to_largest(comm, Stream(20_000, indices, values))
            totals.append(total)
        return totals

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
def test_a_threshold_that_is_far_off_is_discarded(factor):
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


def test_another_k_recomputes_the_threshold():
    def body(comm):
        rng = np.random.default_rng(comm.rank)
        return [reduce_to_largest(comm, stream(rng, 10_000, k)).nnz for k in (100, 200, 50)]

    assert sparcml.launch(body, 3) == [[100, 200, 50]] * 3


def test_other_shapes_and_duplicates_have_their_own_thresholds():
    def body(comm):
        def history(communicator, scales):
            rng = np.random.default_rng(comm.rank)
            for size, scale in scales:
                x = stream(rng, size, size // 100)
                x = Stream(size, x.indices, x.values * np.float32(scale))
                total = reduce_to_largest(communicator, x)
                assert size // 200 <= total.nnz <= size // 50
                yield laws.fingerprint(total)

        cases = list(itertools.islice(itertools.cycle([(10_000, 1), (20_000, 99)]), 40))
        with comm.duplicate() as fresh, comm.duplicate() as fresher:
            for one in (comm, fresh):
                list(history(one, cases))
            a = list(history(fresher, cases[:6]))
        with comm.duplicate() as fresh:
            b = list(history(fresh, cases[:6]))
        np.testing.assert_array_equal(a, b)

    sparcml.launch(body, 3)


@pytest.mark.slow
def test_the_number_of_states_is_limited():
    def body(comm):
        for size in range(1, MAX_SHAPES + 50):
            reduce_to_largest(comm, Stream(size, [0], [1.0]))
        return len(comm._session._persistent["oktopk"])

    assert sparcml.launch(body, 2) == [MAX_SHAPES, MAX_SHAPES]


def test_ranges_are_recomputed():
    """Entries that have moved are balanced again after 64 calls."""

    def body(comm):
        rng = np.random.default_rng(comm.rank)
        for call in range(OFFSETS_EVERY + 1):
            start = 0 if call < 5 else 90_000
            indices = start + np.sort(rng.choice(9000, 400, replace=False))
            reduce_to_largest(comm, Stream(100_000, indices, np.ones(400, np.float32)))
            (state,) = comm._session._persistent["oktopk"].values()
            if call in (0, OFFSETS_EVERY - 1, OFFSETS_EVERY):
                yield list(state.offsets)

    for first, last, recomputed in sparcml.launch(lambda c: list(body(c)), 3):
        assert first == last
        assert first[1:-1] == pytest.approx([3000, 6000], abs=400)
        assert recomputed[1:-1] == pytest.approx([93_000, 96_000], abs=400)
        assert (recomputed[0], recomputed[-1]) == (0, 100_000)
