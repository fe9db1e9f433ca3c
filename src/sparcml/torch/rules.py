"""Which gradients a method sees in full: names and patterns that are left alone."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def left_alone(names: Sequence[str], leave: str | Iterable[str]) -> frozenset[str]:
    """The names that one of the patterns matches, such as "head.*" or "*.embed*".

    Raises:
        ValueError: If a pattern matches none, which is a slip of the pen.
    """
    patterns = [leave] if isinstance(leave, str) else list(leave)
    found: set[str] = set()
    for pattern in patterns:
        matching = {name for name in names if fnmatchcase(name, pattern)}
        if not matching:
            raise ValueError(
                f"leave: no parameter is called {pattern!r}; there are "
                f"{', '.join(names[:8])}{' ...' if len(names) > 8 else ''}"
            )
        found |= matching
    return frozenset(found)
