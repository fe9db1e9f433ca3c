"""Computed bytes of engines' own allreduces, against a count of each message."""

import pytest

from sparcml.costs import ring_nbytes
from sparcml.costs.workload import native_nbytes


def mpich_by_messages(ranks, nbytes):
    """Return what each rank sends, message by message."""
    sent = [0.0] * ranks
    power = 1
    while 2 * power <= ranks:
        power *= 2
    extra = ranks - power
    for pair in range(extra):
        sent[2 * pair] += nbytes  # to the odd rank beside it
    members = [2 * pair + 1 for pair in range(extra)] + list(range(2 * extra, ranks))
    distance = 1
    while distance < power:
        for rank in members:
            if nbytes <= 2048:
                sent[rank] += nbytes
            else:
                sent[rank] += 2 * nbytes * distance / power  # once halving, once doubling
        distance *= 2
    for pair in range(extra):
        sent[2 * pair + 1] += nbytes  # back
    return sent


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 6, 7, 8, 12, 16, 100])
@pytest.mark.parametrize("nbytes", [0, 4, 2048, 2052, 400_000])
def test_mpich(ranks, nbytes):
    found = [native_nbytes("mpich", rank, ranks, nbytes) for rank in range(ranks)]
    assert found == pytest.approx(mpich_by_messages(ranks, nbytes))


def test_few_ranks():
    for algorithm in ("ring", "mpich"):
        assert native_nbytes(algorithm, 0, 1, 1000) == 0
        for nbytes in (1000, 10_000):  # in two halves, or at once
            assert native_nbytes(algorithm, 1, 2, nbytes) == nbytes
    assert native_nbytes("ring", 1, 3, 900) == ring_nbytes(3, 900) == 1200
