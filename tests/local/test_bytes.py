"""Bytes of SparseLoCo: 64 of 4096 values in two bits, with lossless indices."""

import numpy as np

from sparcml import local

from .training import simulate

CHUNKS, K, CHUNK = 512, 64, 4096


def test_sparse_loco_sends_200_times_fewer_bytes_than_float32():
    size = CHUNKS * CHUNK
    m = local.SparseLoCo(1)

    def body(comm):
        x = np.zeros(size, np.float32)
        state = m.init(x)
        before = comm.stats.bytes
        m.step(
            comm, -np.random.default_rng(comm.rank).standard_normal(size, np.float32), state
        )
        return comm.stats.bytes - before

    for sent in simulate(body, 2):
        assert 4 * size / sent > 205  # of what one rank sends to one other
        nnz = CHUNKS * K
        code = 2 * nnz / 8 + 8 * nnz / 1024  # two bits per value, two magnitudes per 1024
        indices = (sent - code) * 8 / nnz
        assert (
            7.36 < indices < 7.65
        )  # the entropy of random indices, and Rice's code of them
