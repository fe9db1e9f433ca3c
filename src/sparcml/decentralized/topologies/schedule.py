"""Order of messages in which no two ranks send to the same one at a time.

Every message gets a time slot in which neither its sender sends nor its receiver receives another
one. This is an edge colouring of the bipartite graph of senders and receivers, and by König's
theorem as many slots suffice as a rank has messages at most. Without it, links into a rank are
shared by chance and a step takes up to twice as long.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_EDGES = 50_000  # of more, which are nearly all pairs, the order is by distance


def send_orders(sources: Sequence[Iterable[int]]) -> list[list[int]]:
    """Return the receivers of each rank in the order in which it sends to them.

    Args:
        sources: For each rank, the other ranks that it receives from.
    """
    edges = [(sender, rank) for rank, each in enumerate(sources) for sender in each]
    if len(edges) > MAX_EDGES:
        return _by_distance(edges, len(sources))
    sending: list[dict[int, int]] = [{} for _ in sources]  # receiver by slot
    receiving: list[dict[int, int]] = [{} for _ in sources]  # sender by slot
    for sender, receiver in edges:
        slot = _free(sending[sender])
        if slot in receiving[receiver]:
            _exchange_slots(sending, receiving, receiver, slot, _free(receiving[receiver]))
        sending[sender][slot], receiving[receiver][slot] = receiver, sender
    return [[slots[slot] for slot in sorted(slots)] for slots in sending]


def _free(slots: dict[int, int]) -> int:
    return next(slot for slot in count() if slot not in slots)


def _exchange_slots(
    sending: list[dict[int, int]],
    receiving: list[dict[int, int]],
    receiver: int,
    slot: int,
    other: int,
) -> None:
    """Free a slot of a receiver, whose `other` slot is free, along the path of both slots."""
    path = []
    while slot in receiving[receiver]:
        sender = receiving[receiver][slot]
        path.append((sender, receiver, slot, other))
        if other not in sending[sender]:
            break
        receiver = sending[sender][other]
        path.append((sender, receiver, other, slot))
    for sender, receiver, old, _ in path:
        del sending[sender][old], receiving[receiver][old]
    for sender, receiver, _, new in path:
        sending[sender][new], receiving[receiver][new] = receiver, sender


def _by_distance(edges: Sequence[tuple[int, int]], n: int) -> list[list[int]]:
    orders: list[list[int]] = [[] for _ in range(n)]
    for sender, receiver in edges:
        orders[sender].append(receiver)
    return [sorted(each, key=lambda r: (r - i) % n) for i, each in enumerate(orders)]
