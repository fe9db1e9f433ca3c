"""What must be received, against what real sums receive."""

import numpy as np
import pytest
from claims import watched

from sparcml import Communicator, Stream
from sparcml.costs.bounds import least_seconds, least_values

SIZE, STORED = 960, 60
SPARSE = (
    "ssar_recursive_double",
    "ssar_split_allgather",
    "dsar_split_allgather",
    "ssar_ring",
)


def received(algorithm, vectors):
    """Entries that all ranks receive, and the entries of the sum."""

    def body(link):
        return Communicator(link).allreduce(vectors[link.rank], algorithm=algorithm)

    totals, sent = watched.run(len(vectors), body)
    return sum(message.entries for message in sent), np.count_nonzero(totals[0].to_dense())


def vectors(kind, ranks):
    rng = np.random.default_rng(3)
    for rank in range(ranks):
        places = {
            "equal": np.arange(STORED),
            "apart": np.arange(STORED) + rank * STORED,
            "random": np.sort(rng.choice(SIZE, STORED, replace=False)),
        }[kind]
        yield Stream(SIZE, places, np.ones(STORED, np.float32))


@pytest.mark.parametrize("P", [2, 3, 8, 64])
def test_both_ends_are_those_of_the_lemma(P):
    assert least_values(P, 10, 10) == pytest.approx(2 * (P - 1) / P * 10)
    assert least_values(P, 10, 10 * P) == pytest.approx((P - 1) * 10)
    assert least_values(1, 10, 10) == 0


@pytest.mark.parametrize("kind", ["equal", "apart", "random"])
@pytest.mark.parametrize("algorithm", SPARSE)
@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_no_sum_receives_less(algorithm, kind, ranks):
    entries, filled = received(algorithm, list(vectors(kind, ranks)))
    assert entries >= ranks * least_values(ranks, STORED, filled) - 1e-9


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_a_dense_ring_receives_no_more(ranks):
    whole = [np.arange(1, SIZE + 1, dtype=np.float32)] * ranks
    _, sent = watched.run(
        ranks, lambda link: Communicator(link).allreduce(whole[link.rank], algorithm="ring")
    )
    entries = sum(message.entries for message in sent)
    assert entries == pytest.approx(ranks * least_values(ranks, SIZE, SIZE))


def test_seconds_are_rounds_and_bytes():
    got = least_seconds(8, 10, 80, byte=1e-9, latency=1e-3)
    assert got == pytest.approx(3e-3 + 70 * 4e-9)
