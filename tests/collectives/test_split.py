"""Allgather of ranges: each message once, the own one first, few in flight at a time."""

import numpy as np
import pytest

import sparcml
from sparcml.collectives import Call
from sparcml.collectives.split import WINDOW, gather_cost, gather_messages
from sparcml.costs.workload import EntryCount
from sparcml.observe import CountingTransport, Stats


@pytest.mark.parametrize("ranks", range(1, 9))
def test_every_message_arrives_once(ranks):
    def body(comm):
        stats = Stats(sent=[])
        call = Call(CountingTransport(comm._transport, stats), "sharded", "sum", 1, None)
        own = np.full(10 + comm.rank, comm.rank, np.uint8)
        order: list[int] = []
        ahead: list[int] = []
        for rank, message in gather_messages(call, own, 1):
            assert message.tolist() == [rank] * (10 + rank)
            ahead.append(stats.messages - len(order[1:]))
            order.append(rank)
        call.finish()
        assert stats.received_messages == comm.size - 1
        return order, ahead, stats.sent

    for me, (order, ahead, sent) in enumerate(sparcml.launch(body, ranks)):
        assert order == [(me - step) % ranks for step in range(ranks)]
        peers = [(me + step) % ranks for step in range(1, ranks)]
        assert sent == [(peer, 10 + me) for peer in peers]
        assert max(ahead) == min(WINDOW, ranks - 1)
        rounds = gather_cost(me, ranks, EntryCount(1, 1, 1, 1))
        assert [peer for r in rounds for peer, _ in r.sends] == peers
