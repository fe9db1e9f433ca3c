"""Bytes on the wire equal their formulas, and SparseLoCo's are 200 times fewer than float32."""

import numpy as np
import pytest

import sparcml
from sparcml import TopK, local, wire
from sparcml.aggregate.planning import planned_methods
from sparcml.costs import ring_nbytes
from sparcml.local.planning import plan_local, site_messages
from sparcml.network.presets import network as parse_network
from sparcml.planning.models import of_size
from sparcml.planning.plan import plan
from sparcml.quantize import Codebook

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


def sent_by_each(method, x, changes, ranks):
    """Return the bytes of a first exchange of each rank, and the engine's part of them."""

    def body(comm):
        method.step(comm, x - changes[comm.rank], method.init(x))
        return comm.stats.bytes, comm.stats.computed_bytes

    return simulate(body, ranks)


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_a_message_of_sparse_loco_goes_once_to_each_other_rank(ranks):
    """Everything else that is sent is a comparison of settings, of less than a kilobyte."""
    size, m = 50 * 4096, local.SparseLoCo(1)
    x = np.zeros(size, np.float32)
    changes = np.random.default_rng(0).standard_normal((ranks, size), np.float32)
    nothing = sent_by_each(local.SparseLoCo(1, k=0), x, changes, ranks)
    for rank, (sent, native) in enumerate(sent_by_each(m, x, changes, ranks)):
        selected = TopK(k=64, bucket=4096).select(changes[rank])
        assert selected.nnz == 50 * 64
        message, _ = wire.encode(selected, wire.Tag(0, 0, 0), Codebook())
        assert native == 0
        assert sent - nothing[rank][0] == (ranks - 1) * len(message)
        assert nothing[rank][0] < 1000


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_a_dense_exchange_is_one_allreduce(ranks):
    size = 30_000
    x = np.zeros(size, np.float32)
    changes = np.random.default_rng(0).standard_normal((ranks, size), np.float32)
    for m in (local.LocalSGD(1), local.DiLoCo(1), local.BMUF(1)):
        for sent, native in sent_by_each(m, x, changes, ranks):
            assert native == int(ring_nbytes(ranks, 4 * size))
            assert sent - native < 1000


def test_the_planned_bytes_of_sparse_loco_are_those_sent():
    ranks, size = 4, 256 * 4096
    x = np.zeros(size, np.float32)
    changes = np.random.default_rng(0).standard_normal((ranks, size), np.float32)
    (sent, _), *_ = sent_by_each(local.SparseLoCo(1), x, changes, ranks)
    base = plan(of_size(str(size)), ranks, "1gbit", 0.1, methods=planned_methods((0.01,)))
    (row,) = (r for r in plan_local(base, 1) if r.form.startswith("SparseLoCo"))
    assert row.nbytes == pytest.approx(sent, rel=0.02)


def crossing(body, ranks, sites):
    """Return the bytes of the messages that leave each site, of consecutive ranks, on threads."""

    def counted(comm):
        comm.stats.sent = []
        body(comm)
        return comm.stats.sent

    inside = ranks // sites
    links: list[list[int]] = [[] for _ in range(sites)]
    for rank, sent in enumerate(sparcml.launch(counted, ranks)):
        links[rank // inside] += [n for peer, n in sent if peer // inside != rank // inside]
    return links


@pytest.mark.parametrize(("ranks", "sites"), [(2, 2), (4, 2), (6, 3), (8, 2), (8, 4)])
def test_the_planned_bytes_between_sites_are_those_sent(ranks, sites):
    size = 64 * 4096
    x = np.zeros(size, np.float32)
    changes = np.random.default_rng(0).standard_normal((ranks, size), np.float32)
    m = local.SparseLoCo(1)
    methods = planned_methods((0.01,))
    base = plan(of_size(str(size)), ranks, "100gbit", 0.1, methods=methods)
    network = parse_network("1mbit")
    dense, *_, sparse = plan_local(base, 1, sites, "1mbit")

    def exchange(comm):
        m.step(comm, x - changes[comm.rank], m.init(x))

    def ring(comm):
        comm.allreduce(changes[comm.rank], algorithm="ring")

    for link in crossing(exchange, ranks, sites):
        messages = [n for n in link if n > 4000]  # others compare settings
        assert len(messages) == site_messages(ranks, sites)
        seconds = sum(messages) * network.seconds_per_byte
        assert sparse.exchange == pytest.approx(seconds, rel=0.03)
    for link in crossing(ring, ranks, sites):
        seconds = sum(link) * network.seconds_per_byte
        assert dense.exchange == pytest.approx(seconds, rel=0.03)
