"""Streaming: when each fragment of a model is exchanged, and which layers it has.

Of P fragments and H steps per round, fragment p = 0 .. P - 1 is exchanged once per round:

    sent after step      (p + 1) H / P - delay       (mod H)
    merged after step    (p + 1) H / P               (mod H)

So at most one is in flight, and all ranks compute `delay` steps meanwhile. With one fragment and
no delay this is DiLoCo.

Reference: Douillard et al.: Streaming DiLoCo with overlapping communication, 2025.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def sent_at(number: int, every: int, fragments: int, delay: int) -> int | None:
    """Return the fragment that is sent after a step, or None; the first step is number 1."""
    quotient, rest = divmod(number + delay, every // fragments)
    return (quotient - 1) % fragments if rest == 0 and quotient else None


def merged_at(number: int, every: int, fragments: int) -> int | None:
    """Return the fragment that is merged after a step, or None."""
    return sent_at(number, every, fragments, 0)


def stride(
    names: Sequence[str], fragments: int, sizes: Sequence[int] | None = None
) -> list[tuple[str, ...]]:
    """Return the names of each fragment: layer i goes to fragment i modulo their number.

    A layer is what shares the path up to its first number, such as `blocks.3`, or else a module.
    Parameters outside of layers go to the first fragment. If there are fewer layers than
    fragments, or a fragment would have more than twice the mean number of values, parameters
    are dealt one by one instead, the largest first, each to the smallest fragment: an exchange
    is hidden only if its largest fragment is.

    Args:
        names: Names of the parameters.
        fragments: Number of fragments.
        sizes: Number of values of each parameter. Default: all the same.
    """
    size = dict(zip(names, [1] * len(names) if sizes is None else sizes, strict=True))
    for layer_of in (_block, _module):
        layers = sorted({layer for n in names if (layer := layer_of(n))}, key=_natural)
        place = {layer: i % fragments for i, layer in enumerate(layers)}
        groups: list[list[str]] = [[] for _ in range(fragments)]
        for name in sorted(names):
            groups[place.get(layer_of(name), 0)].append(name)
        largest = max(sum(size[n] for n in group) for group in groups)
        if len(layers) >= fragments and largest * fragments <= 2 * sum(size.values()):
            return [tuple(group) for group in groups]
    return _balanced(size, fragments)


def _balanced(size: Mapping[str, int], fragments: int) -> list[tuple[str, ...]]:
    groups: list[list[str]] = [[] for _ in range(fragments)]
    totals = [(0, 0, i) for i in range(fragments)]  # values, parameters, fragment
    for name in sorted(size, key=lambda n: (-size[n], n)):
        values, count, i = min(totals)
        groups[i].append(name)
        totals[i] = values + size[name], count + 1, i
    return [tuple(sorted(group)) for group in groups]


def _block(name: str) -> str:
    """Return the path up to its first number; empty if there is none."""
    found = re.match(r"(?:[^.]*\.)*?\d+(?=\.)", name)
    return found[0] if found else ""


def _module(name: str) -> str:
    return name.rpartition(".")[0]


def _natural(name: str) -> list[tuple[bool, int | str]]:
    """Return a key that sorts numbers in a path by value."""
    return [(p.isdecimal(), int(p) if p.isdecimal() else p) for p in name.split(".")]
