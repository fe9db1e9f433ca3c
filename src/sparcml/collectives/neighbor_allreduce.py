"""Weighted mean of the vectors of a rank and its neighbours: one step of gossip.

Rounds: 1 (one message per receiver).
Bytes sent per rank: its stream once per receiver, whatever the number of ranks.
Fan-in: the number of neighbours.

Rank i computes the sum of W_ij x_j over its neighbours j and itself. W is the mixing matrix of
the step, of which each rank knows its own row and its receivers. All sends and receives
are in flight at once. The sum is formed in the order of the ranks, whichever message arrives
first, in float64 and rounded once. So two runs give the same bits, and ranks that agree stay
exactly as they are.

Each rank encodes its vector once, and all receivers decode the same bytes. With a quantizer
the received vectors are quantized and the rank's own is not.

Every message carries a hash of the topology and the step, so that ranks with different ones
are detected.

Reference: Lian, Zhang, Zhang, Hsieh, Zhang, Liu: Can Decentralized Algorithms Outperform
Centralized Algorithms?, NeurIPS 2017.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .. import wire
from ..costs.workload import EntryCount, Round, Workload
from ..errors import MismatchError
from .base import Collective, register
from .neighbor_exchange import exchange_messages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..stream import Stream
    from ..transport import Message
    from .call import Call


class Mixing(NamedTuple):
    """A rank's part of one step of a topology.

    Attributes:
        own: Weight of the rank's own vector.
        weights: Weights of its neighbours' vectors.
        receivers: Ranks that receive its vector, in the order in which it is sent.
        tag: Hash of the topology and the step, one byte.
        name: The topology and the step, for error messages.
    """

    own: float
    weights: Mapping[int, float]
    receivers: Sequence[int]
    tag: int = 0
    name: str = ""


def neighbor_allreduce(call: Call, x: Stream, mixing: Mixing) -> Stream:
    """Return the weighted sum of the streams of this rank and its neighbours."""
    messages: dict[int, Message] = {}
    if mixing.receivers:
        message, _ = call.encode(x, mixing.tag, see=False)
        messages = dict.fromkeys(mixing.receivers, message)
    streams, weights = {call.rank: x}, {call.rank: mixing.own, **mixing.weights}
    for source, message in exchange_messages(call, messages, sorted(mixing.weights)):
        _check_tag(call, message, source, mixing)
        streams[source] = call.decode(message, source, mixing.tag)
    ranks = sorted(streams)
    return call.weighted_sum([weights[r] for r in ranks], [streams[r] for r in ranks])


def _check_tag(call: Call, message: Message, source: int, mixing: Mixing) -> None:
    with call.decoding_from(source):
        header = wire.Header.read(message)
        call.check(header, source)
        if header.tag.round != mixing.tag:
            raise MismatchError(
                f"{call.name()} has {mixing.name}, but {call.name(source)} has another one, in "
                f"neighbor_allreduce; all ranks must pass the same topology and step"
            )


def cost(
    rank: int, workload: Workload, neighbors: Sequence[int], receivers: Sequence[int]
) -> list[Round]:
    """Return the round of a rank that has these neighbours and receivers."""
    N, nnz = workload.blocks, workload.nnz

    def count(sender: int) -> EntryCount:
        return EntryCount(nnz[sender], nnz[sender], nnz[sender], N)

    added = [nnz[r] for r in sorted({rank, *neighbors})]
    return [
        Round(
            tuple((peer, (count(rank),)) for peer in receivers),
            merged=sum(k for k in added if k < N),
            written=sum(k for k in added if k == N),
            receives=tuple(count(peer) for peer in sorted(neighbors)),
        )
    ]


register(Collective("neighbor_allreduce", 23))
