"""Any number of ranks made a power of two: the first ranks pair up and one sits out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fold:
    """How `size` ranks act as the `power` virtual ranks of a doubling algorithm.

    The first 2 * extra ranks form pairs; the even one hands its vector to the odd one and
    gets the result from it at the end.
    """

    size: int

    @property
    def power(self) -> int:
        """The largest power of two among the ranks."""
        return 1 << (self.size.bit_length() - 1)

    @property
    def extra(self) -> int:
        """How many pairs there are."""
        return self.size - self.power

    def virtual(self, rank: int) -> int | None:
        """The virtual rank, or None for one that sits out."""
        if rank >= 2 * self.extra:
            return rank - self.extra
        return rank // 2 if rank % 2 else None

    def real(self, virtual: int) -> int:
        """The opposite of `virtual`."""
        return 2 * virtual + 1 if virtual < self.extra else virtual + self.extra

    def partner(self, rank: int) -> int | None:
        """The other of the pair, if the rank is in one."""
        return rank ^ 1 if rank < 2 * self.extra else None

    def members(self, group: range) -> list[int]:
        """The real ranks whose vectors these virtual ranks bring."""
        found = []
        for virtual in group:
            rank = self.real(virtual)
            partner = self.partner(rank)
            found += [rank] if partner is None else [rank, partner]
        return found
