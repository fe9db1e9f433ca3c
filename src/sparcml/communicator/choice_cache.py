"""What `auto` has chosen before, so that ranks need not agree on every call.

Training sums vectors of the same few kinds again and again, and most of them keep their
density. A choice therefore holds for the next calls of its kind, as long as results have
about as many entries as the first one had; if they have not, the next 32 calls agree
each. All ranks make the same calls and get the same results, so they keep and forget the
same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

EVERY = 32  # calls
MOST = 256  # kinds of calls that are remembered
UNCHECKED = "native"  # engines do not notice that ranks differ: these agree every time


@dataclass
class _Kind:
    algorithm: str | None = None
    calls: int = 0  # since it was chosen
    entries: int | None = None  # of the first result since then
    recheck: int = 0  # calls that must agree, since results have changed


class ChoiceCache:
    """The choices of one communicator."""

    def __init__(self) -> None:
        self._known: dict[Hashable, _Kind] = {}

    def choice(self, kind: Hashable) -> str | None:
        """What was chosen for calls of this kind, if that still holds."""
        found = self._known.get(kind)
        if found is None or found.recheck or found.calls >= EVERY:
            return None
        return found.algorithm

    def store(self, kind: Hashable, algorithm: str) -> None:
        """The ranks have agreed; the oldest kind gives way if there are too many."""
        before = self._known.pop(kind, _Kind())
        kept = None if algorithm == UNCHECKED else algorithm
        self._known[kind] = _Kind(kept, recheck=max(0, before.recheck - 1))
        if len(self._known) > MOST:
            del self._known[next(iter(self._known))]

    def record(self, kind: Hashable, entries: int) -> None:
        """A call of this kind has given so many entries: about as many as before?

        If not, vectors of one kind may be of several sorts, in turns: agree for a while.
        """
        found = self._known.get(kind)
        if found is None:  # nothing was chosen: the caller named an algorithm
            return
        found.calls += 1
        if found.entries is None:
            found.entries = entries
        elif not found.entries <= 2 * entries <= 4 * found.entries:
            found.recheck, found.algorithm = EVERY, None
