"""Agreement on the topology of a neighbor_allreduce, before the first one with it.

Rounds: ceil(log2(P)).
Bytes sent per rank: one message of 160 bytes per round.

A rank talks to its neighbours only, so that ranks with different topologies could wait for
messages that no rank sends. Every rank therefore sends the smallest and the largest fingerprint
that it has heard of, with their ranks and names, to the rank 2^t after it in round t. In the
end all ranks know the same two, and all raise the same error if they differ. The
messages do not grow with the number of ranks.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from .. import wire
from ..errors import MismatchError, WireError
from ..stream import Stream
from .base import Collective, register

if TYPE_CHECKING:
    from .call import Call

LAYOUT = struct.Struct("<QI52s")  # fingerprint, rank, name
Known = tuple[int, int, bytes]


def agree_on_topology(call: Call, fingerprint: int, name: str) -> MismatchError | None:
    """Return the mismatch if ranks have different topologies: the same on every rank."""
    P, me = call.size, call.rank
    low = high = (fingerprint, me, name.encode()[:52].ljust(52, b"\0"))
    distance, round = 1, 0
    while distance < P:
        payload = np.frombuffer(LAYOUT.pack(*low) + LAYOUT.pack(*high), np.uint8)
        message = call.header_only(Stream(0, [], []), payload, round)
        call.send_message((me + distance) % P, message, round)
        source = (me - distance) % P
        received = call.receive_message(source, round)
        call.verify(received, source)
        with call.decoding_from(source):
            theirs = _unpack(wire.auxiliary(received, np.dtype(np.uint8)).tobytes(), P)
        low, high = min(low, *theirs), max(high, *theirs, key=_largest)
        distance, round = 2 * distance, round + 1
    if low[0] == high[0]:
        return None
    first, second = sorted((low, high), key=lambda known: known[1])
    return MismatchError(
        f"neighbor_allreduce: {call.name(first[1])} has {_name(first)}, but "
        f"{call.name(second[1])} has {_name(second)}; all ranks must pass the same topology"
    )


def _unpack(payload: bytes, ranks: int) -> tuple[Known, Known]:
    if len(payload) != 2 * LAYOUT.size:
        raise WireError(f"expected two topologies, got {len(payload)} bytes")
    low, high = LAYOUT.unpack_from(payload), LAYOUT.unpack_from(payload, LAYOUT.size)
    if max(low[1], high[1]) >= ranks:
        raise WireError(f"expected ranks below {ranks}, got {max(low[1], high[1])}")
    return low, high


def _largest(known: Known) -> tuple[int, int]:
    return known[0], -known[
        1
    ]  # of equal ones the lowest rank, so that all ranks name the same


def _name(known: Known) -> str:
    return known[2].rstrip(b"\0").decode("utf-8", "replace")


register(Collective("agree_topology", 25))
