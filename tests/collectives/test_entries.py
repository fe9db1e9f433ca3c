"""Counted entries at the bounds of the paper, folding, and the expected nnz of results."""

import threading

import numpy as np
import pytest

from sparcml import Communicator, Stream, wire
from sparcml.collectives.fold import Fold
from sparcml.costs.workload import Workload, union
from sparcml.transport import ThreadGroup, ThreadTransport

N, K = 16 * 4096, 16 * 16


class Recording(ThreadTransport):
    """Transport that counts the entries of sent messages."""

    entries = 0

    def isend(self, peer, message):
        rest = message
        while len(rest):
            self.entries += wire.Header.read(rest).nnz
            rest = rest[wire.message_length(rest) :]
        return super().isend(peer, message)


def entries_sent(ranks, algorithm, indices_of):
    group = ThreadGroup(ranks)
    transports = [Recording(group, rank, 10) for rank in range(ranks)]

    def body(rank):
        x = Stream(N, indices_of(rank, ranks), np.ones(K, np.float32))
        Communicator(transports[rank]).allreduce(x, algorithm=algorithm)

    threads = [threading.Thread(target=body, args=(r,)) for r in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (count,) = {t.entries for t in transports}
    return count


def identical(rank, ranks):
    return np.arange(0, N, N // K)


def disjoint(rank, ranks):
    return np.arange(0, N, N // K) + rank


@pytest.mark.parametrize("ranks", [2, 4, 8, 16])
def test_recursive_doubling_meets_its_bounds(ranks):
    name = "ssar_recursive_double"
    rounds = int(np.log2(ranks))
    assert entries_sent(ranks, name, identical) == rounds * K
    assert entries_sent(ranks, name, disjoint) == (ranks - 1) * K


@pytest.mark.parametrize("ranks", [2, 4, 8, 16])
def test_split_allgather_meets_its_bounds(ranks):
    name = "ssar_split_allgather"
    others = K * (ranks - 1) // ranks
    assert entries_sent(ranks, name, identical) == 2 * others
    assert entries_sent(ranks, name, disjoint) == others + (ranks - 1) * K


@pytest.mark.parametrize("ranks", range(1, 18))
def test_folding_is_a_bijection(ranks):
    fold = Fold(ranks)
    active = [r for r in range(ranks) if fold.virtual(r) is not None]
    assert [fold.virtual(r) for r in active] == list(range(fold.power))
    assert [fold.real(v) for v in range(fold.power)] == active
    pairs = {r: p for r in range(ranks) if (p := fold.partner(r)) is not None}
    assert len(pairs) == 2 * fold.extra
    assert all(pairs[p] == r for r, p in pairs.items())


@pytest.mark.parametrize("ranks", [2, 8, 32])
def test_the_expected_nnz_of_a_result_is_the_mean_of_real_ones(ranks):
    """Within 5 standard deviations of the mean over seeds."""
    n, k, seeds = 512, 8, 40
    expected = union(Workload(n, 4, (k,) * ranks), range(ranks)).expected
    assert expected == pytest.approx(n * (1 - (1 - k / n) ** ranks))
    a = (1 - k / n) ** ranks
    b = ((n - k) * (n - k - 1) / (n * (n - 1))) ** ranks
    sd = np.sqrt((n * a + n * (n - 1) * b - (n * a) ** 2) / seeds)
    sizes = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        rows = [rng.choice(n, k, replace=False) for _ in range(ranks)]
        sizes.append(len(np.unique(rows)))
    assert abs(np.mean(sizes) - expected) <= 5 * sd
