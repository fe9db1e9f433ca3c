"""The vote: one bit a value, up and down, and no minority decides."""

from __future__ import annotations

import numpy as np
import pytest

import sparcml
from sparcml import Compressed, Dense, MajorityVote, TopK

from ..rosters import RANKS

SIZE = 3000


def noise(*key):
    return np.random.default_rng(key).standard_normal(SIZE).astype(np.float32)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_vote_is_the_sign_of_the_sum_of_signs(ranks, dtype):
    def work(comm):
        g = [noise(r).astype(dtype) for r in range(comm.size)]
        for x in g:
            x[::3] = 0  # which counts as +1
            x[1] = -1e-50
        got, _ = MajorityVote().aggregate(comm, g[comm.rank], MajorityVote().init(SIZE))
        signs = np.sum([np.where(x >= 0, 1, -1) for x in g], axis=0)
        np.testing.assert_array_equal(got, np.where(signs >= 0, 1, -1))

    sparcml.launch(work, ranks)


def test_less_than_half_of_the_ranks_cannot_turn_it():
    def work(comm):
        g = noise(0)
        mine = -100 * g if comm.rank < 3 else g
        got, _ = MajorityVote().aggregate(comm, mine, MajorityVote().init(SIZE))
        np.testing.assert_array_equal(got, np.where(g >= 0, 1, -1))

    sparcml.launch(work, 7)


def test_one_bit_goes_up_and_one_comes_down():
    def work(comm):
        method = MajorityVote()
        _, state = method.aggregate(comm, noise(comm.rank), method.init(SIZE))
        comm.stats.reset()
        method.aggregate(comm, noise(comm.rank), state)
        return comm.stats.bytes

    for nbytes in sparcml.launch(work, 5):
        assert nbytes <= 4 * 2 * (SIZE / 5 / 8 + 64)


def test_signum_votes_for_its_momentum():
    def work(comm):
        method = MajorityVote(momentum=0.9)
        state = method.init(SIZE)
        m = np.zeros((comm.size, SIZE), np.float32)
        for step in range(5):
            got, state = method.aggregate(comm, noise(comm.rank, step), state)
            g = np.array([noise(r, step) for r in range(comm.size)])
            m = np.float32(0.9) * m + (1 - np.float32(0.9)) * g
            votes = np.where(m >= 0, 1, -1).sum(axis=0)
            np.testing.assert_array_equal(got, np.where(votes >= 0, 1, -1))

    sparcml.launch(work, 3)


def test_it_begins_when_all_debts_are_paid():
    comm, owing = sparcml.world(), Compressed(TopK(0.1))
    _, state = owing.aggregate(comm, noise(0), owing.init(SIZE))
    _, state = Dense().aggregate(comm, noise(1), Dense().init(SIZE, state))
    assert set(MajorityVote().init(SIZE, state)) == {"step"}
