"""Folding: an algorithm for a power of two of ranks runs on any number of ranks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fold:
    """Mapping of `size` ranks to the virtual ranks of a doubling algorithm.

    The first 2 * extra ranks form pairs. The even rank of a pair sends its vector to the odd
    rank, which takes part for both and sends the result back at the end.
    """

    size: int

    @property
    def power(self) -> int:
        """Number of virtual ranks: the largest power of two up to `size`."""
        return 1 << (self.size.bit_length() - 1)

    @property
    def extra(self) -> int:
        """Number of pairs."""
        return self.size - self.power

    def virtual(self, rank: int) -> int | None:
        """Return the virtual rank, or None for the even rank of a pair."""
        if rank >= 2 * self.extra:
            return rank - self.extra
        return rank // 2 if rank % 2 else None

    def real(self, virtual: int) -> int:
        """Return the rank of a virtual rank: the inverse of `virtual`."""
        return 2 * virtual + 1 if virtual < self.extra else virtual + self.extra

    def partner(self, rank: int) -> int | None:
        """Return the other rank of the pair, or None for a rank without a partner."""
        return rank ^ 1 if rank < 2 * self.extra else None

    def members(self, group: range) -> list[int]:
        """Return all ranks whose vectors a range of virtual ranks holds."""
        ranks = []
        for virtual in group:
            rank = self.real(virtual)
            partner = self.partner(rank)
            ranks += [rank] if partner is None else [rank, partner]
        return ranks
