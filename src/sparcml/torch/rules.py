"""Which parameters are not compressed: by name, by pattern, or by what they are."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def excluded_names(names: Sequence[str], leave: str | Iterable[str]) -> frozenset[str]:
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


def sparse_tables(module: torch.nn.Module) -> frozenset[str]:
    """The parameters whose gradients have only the rows that were used."""
    kinds = (torch.nn.Embedding, torch.nn.EmbeddingBag)
    return frozenset(
        f"{name}.weight" if name else "weight"
        for name, part in module.named_modules()
        if isinstance(part, kinds) and part.sparse
    )
