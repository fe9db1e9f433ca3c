"""Seconds where several ranks share a node and its link to the others.

A network's costs are those of ranks that all send at once, as they are measured. If n
ranks share a link, each of them has an n-th of it; whoever sends alone has all. Messages
inside a node do not use it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from .cost import Network, Round

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..transport import Nodes


def shared(network: Network, ranks: int) -> Network:
    """What messages cost if so many ranks share a link and all send at once."""
    return replace(
        network,
        latency=network.latency + (ranks - 1) * network.message,
        message=ranks * network.message,
        byte=ranks * network.byte,
    )


def alone(network: Network, ranks: int) -> Network:
    """The opposite: what they cost if one of so many ranks sends."""
    message = network.message / ranks
    return replace(
        network,
        latency=max(0.0, network.latency - (ranks - 1) * message),
        message=message,
        byte=network.byte / ranks,
    )


def node_seconds(
    network: Network,
    nodes: Nodes,
    mates: Sequence[int],
    costs: Sequence[Sequence[Round]],
    entry_bytes: float,
) -> float:
    """Rounds of all ranks of a node: its link carries the messages of all to others."""
    idle = replace(network, coded=0.0, merged=0.0, written=0.0)
    link = alone(idle, len(mates))
    near = nodes.inside
    memory = replace(idle, latency=near.latency, message=near.gap, byte=near.byte)
    work = replace(network, latency=0.0, message=0.0, byte=0.0)
    total = 0.0
    for turns in zip_longest(*costs, fillvalue=Round()):
        outside = link.seconds([_outside(turns, mates)], entry_bytes)
        inside = [memory.seconds([_inside(turn, mates)], entry_bytes) for turn in turns]
        total += max(outside, *inside)
        total += max(work.seconds([turn], entry_bytes) for turn in turns)
    return total


def _outside(turns: Sequence[Round], mates: Sequence[int]) -> Round:
    """What passes the link of a node in one round."""
    return Round(
        tuple(
            send
            for turn in turns
            for send in turn.sends * turn.times
            if send[0] not in mates
        ),
        waits=tuple(
            load for turn in turns if not turn.inside for load in turn.waits * turn.times
        ),
    )


def _inside(turn: Round, mates: Sequence[int]) -> Round:
    """What one rank sends inside its node."""
    return Round(
        tuple(send for send in turn.sends if send[0] in mates),
        waits=turn.waits if turn.inside else (),
        times=turn.times,
    )
