"""Means of sparse changes that every rank sends to all others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..communicator.communicator import Communicator
    from ..quantize import Quantizer
    from ..stream import Stream
    from ..stream.arrays import Values

ALL, SENDERS = "all", "senders"
MEANS = (ALL, SENDERS)


def gather(comm: Communicator, sent: Stream, quantize: Quantizer | None) -> list[Stream]:
    """Return the streams of all ranks as all ranks decode them, in rank order. Collective.

    Each is encoded once and sent to every other rank.
    """
    peers = [(comm.rank + i) % comm.size for i in range(1, comm.size)]
    received, seen = comm.neighbor_exchange(
        sent, peers, [(comm.rank - i) % comm.size for i in range(1, comm.size)], quantize,
        return_seen=True,
    )  # fmt: skip
    return [seen if rank == comm.rank else received[rank] for rank in range(comm.size)]


def mean_of(streams: Sequence[Stream], mean: str) -> Values:
    """Return the mean of streams as a vector, added in rank order.

    Args:
        streams: Streams of all ranks.
        mean: "all" divides by the number of ranks, "senders" each entry by the number of ranks
            that sent it.
    """
    first = streams[0]
    total = np.zeros(first.size, first.dtype)
    count = np.zeros(first.size, np.uint32) if mean == SENDERS else None
    for stream in streams:
        if stream.raw_indices is None:
            total += stream.raw_values
            places: slice | Values = slice(None)
        else:
            places = stream.raw_indices
            total[places] += stream.raw_values
        if count is not None:
            count[places] += 1
    divisor = len(streams) if count is None else np.maximum(count, 1)
    result: Values = total / np.asarray(divisor, total.dtype)
    return result
