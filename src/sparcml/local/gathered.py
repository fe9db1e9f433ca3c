"""Means of sparse changes that every rank sends to all others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import buffer_pool

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
    size, dtype = streams[0].size, streams[0].dtype
    total = buffer_pool.full(size, 0, dtype)
    for stream in streams:
        total[_places(stream)] += stream.raw_values
    if mean != SENDERS:
        np.divide(total, dtype.type(len(streams)), out=total)
        return total
    count = buffer_pool.full(size, 0, np.uint16)
    for stream in streams:
        count[_places(stream)] += 1
    for stream in streams:  # touches what was sent, and each entry of it once
        places = _places(stream)
        senders = count[places]
        if isinstance(places, np.ndarray):
            places, senders = places[senders > 0], senders[senders > 0]
        total[places] /= np.maximum(senders, 1).astype(dtype)
        count[places] = 0
    return total


def _places(stream: Stream) -> slice | Values:
    return slice(None) if stream.raw_indices is None else stream.raw_indices
