"""A collective: every rank sends its stream to all others.

Rounds: 1.
Bytes sent per rank: (P - 1) k entries.
Fan-in: P - 1.
"""

from sparcml.collectives.base import Algorithm, register
from sparcml.costs.workload import Round, union


def exchange_all(call, x):
    """Return the sum of all streams, added in rank order."""
    peers = [rank for rank in range(call.size) if rank != call.rank]
    for peer in peers:
        call.send(peer, x, 1)
    streams = {peer: call.receive(peer, 1) for peer in peers} | {call.rank: x}
    return call.add_many([streams[rank] for rank in range(call.size)])


def cost(rank, workload):
    """Return the rounds of a rank."""
    count = union(workload, [rank])
    peers = [peer for peer in range(workload.ranks) if peer != rank]
    return [Round(tuple((p, (count,)) for p in peers), merged=sum(workload.nnz))]


register(Algorithm("exchange_all", 31, exchange_all, cost))
