"""Allgather of messages of unequal sizes by Bruck's algorithm, for any number of ranks.

Rounds: ceil(log2(P)).
Bytes sent per rank: the messages of the P - 1 other ranks in total.

Before round t a rank holds its own message and those of the 2^t - 1 ranks after it, and
sends them to the rank 2^t before it. Messages are forwarded as their sender encoded them:
each is encoded once, and all ranks decode the same bytes.

Reference: Bruck, Ho, Kipnis, Upfal, Weathersby: Efficient Algorithms for All-to-All
Communications in Multiport Message-Passing Systems, IEEE TPDS 1997.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import buffer_pool, kernels, wire
from ..costs.workload import EntryCount, Round
from ..errors import MismatchError, WireError
from ..stream import Stream
from . import numbers
from .base import Collective, register

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..stream.arrays import Values
    from ..transport import Message
    from .call import Call
    from .numbers import Number


def allgather(call: Call, x: Stream | Number) -> list[Stream | Number]:
    """Return the streams or numbers of all ranks in rank order; they may differ in size."""
    messages = allgather_messages(call, numbers.encode(call, x, 0))
    return [numbers.decode(call, m, rank, 0) for rank, m in enumerate(messages)]


def add_all(items: Sequence[Stream | Number], out: Values) -> None:
    """Add streams to an array, in their order.

    Raises:
        MismatchError: If one of them is not a vector of the array's size and dtype.
    """
    for rank, x in enumerate(items):
        if not isinstance(x, Stream) or (x.size, x.dtype) != (out.size, out.dtype):
            found = f"{x.size} of {x.dtype}" if isinstance(x, Stream) else "a number"
            raise MismatchError(
                f"allgather_add: vectors must have {out.size} values of {out.dtype} on all "
                f"ranks, got {found} on rank {rank}"
            )
    for x in items:
        assert isinstance(x, Stream)
        if x.raw_indices is None:
            kernels.combine_dense("sum", out, x.raw_values, out)
        else:
            kernels.scatter("sum", out, x.raw_indices, x.raw_values, x.block)


def allgather_messages(call: Call, message: Message, round: int = 0) -> list[Message]:
    """Return the messages of all ranks in rank order, still encoded.

    Args:
        call: The call.
        message: Message of this rank.
        round: Number of the first round.
    """
    P, me = call.size, call.rank
    held = [message]  # of ranks me, me + 1, me + 2, ...
    while len(held) < P:
        distance = len(held)
        sent = held[: P - distance]
        bundle = sent[0] if len(sent) == 1 else buffer_pool.concatenate(sent)
        call.send_message((me - distance) % P, bundle, round)
        source = (me + distance) % P
        bundle = call.receive_message(source, round)
        round += 1
        with call.decoding_from(source):
            held += unbundle(call, bundle, source, len(sent))
    return held[P - me :] + held[: P - me]


def unbundle(call: Call, bundle: Message, source: int, count: int) -> list[Message]:
    """Split concatenated messages; the first one is the sender's own."""
    messages = []
    for i in range(count):
        call.check(wire.Header.read(bundle), (source + i) % call.size)
        length = wire.message_length(bundle)
        messages.append(bundle[:length])
        bundle = bundle[length:]
    if len(bundle):
        raise WireError(f"{len(bundle)} extra bytes after {count} messages")
    return messages


def cost(rank: int, ranks: int, count: Callable[[int], EntryCount]) -> list[Round]:
    """Return the rounds of a rank, given the entry count of each rank's message."""
    rounds = []
    distance = 1
    while distance < ranks:
        bundled = min(distance, ranks - distance)
        counts = tuple(count((rank + i) % ranks) for i in range(bundled))
        rounds.append(Round((((rank - distance) % ranks, counts),)))
        distance += bundled
    return rounds


register(Collective("allgather", 1))
