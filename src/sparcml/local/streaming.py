"""Fragments of a model that are exchanged one after the other, and when.

Of P fragments and H steps per round, fragment p = 0 .. P - 1 is exchanged once per round:

    sent after step      (p + 1) H / P - delay       (mod H)
    merged after step    (p + 1) H / P               (mod H)

So at most one is in flight, and all ranks compute `delay` steps meanwhile. With one fragment and
no delay this is DiLoCo.

Reference: Douillard et al.: Streaming DiLoCo with overlapping communication, 2025.
"""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .. import buffer_pool
from ..aggregate.flat_model import UNNAMED, join_adjacent
from ..stream import range_offsets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ..aggregate.flat_model import Layout
    from ..stream.arrays import Values

Names = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Fragment:
    """A part of a model.

    Attributes:
        names: Names of its parameters; empty for a range of a single array.
        shapes: Their shapes, or that of the array.
        ranges: Starts and ends in the flat model, of which no two are adjacent.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    ranges: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        """Number of values."""
        return sum(end - start for start, end in self.ranges)

    def read(self, values: Values) -> Values:
        """Return the fragment's values of a flat model; a view if it is one range."""
        if len(self.ranges) == 1:
            return values[slice(*self.ranges[0])]
        return np.concatenate([values[start:end] for start, end in self.ranges])

    def difference(self, a: Values, b: Values) -> Values:
        """Return the fragment of a - b, for two flat models."""
        result = buffer_pool.empty(self.size, a.dtype)
        for start, end, first in self._places():
            np.subtract(a[start:end], b[start:end], out=result[first : first + end - start])
        return result

    def replaced(self, values: Values, new: Values) -> Values:
        """Return a flat model with other values of the fragment; `new` if that is all of it."""
        if self.size == values.size:
            return new
        result = buffer_pool.copy(values)
        for start, end, first in self._places():
            result[start:end] = new[first : first + end - start]
        return result

    def _places(self) -> Iterator[tuple[int, int, int]]:
        """Yield start and end of each range in the model, and its start in the fragment."""
        first = 0
        for start, end in self.ranges:
            yield start, end, first
            first += end - start

    def split(self, values: Values) -> Values | dict[str, Values]:
        """Return the fragment's values by parameter, or as they are if it has no names."""
        if not self.names:
            return values.reshape(self.shapes[0])
        parts: dict[str, Values] = {}
        first = 0
        for name, shape in zip(self.names, self.shapes, strict=True):
            size = math.prod(shape)
            parts[name] = values[first : first + size].reshape(shape)
            first += size
        return parts

    def join(self, parts: NDArray[np.generic] | Mapping[str, Values]) -> Values:
        """Return the values of `split` as one flat vector."""
        if isinstance(parts, np.ndarray):
            return parts.reshape(-1)
        return join_adjacent([np.ravel(parts[name]) for name in self.names])


def sent_at(number: int, every: int, fragments: int, delay: int) -> int | None:
    """Return the fragment that is sent after a step, or None; the first step is number 1."""
    quotient, rest = divmod(number + delay, every // fragments)
    return (quotient - 1) % fragments if rest == 0 and quotient else None


def merged_at(number: int, every: int, fragments: int) -> int | None:
    """Return the fragment that is merged after a step, or None."""
    return sent_at(number, every, fragments, 0)


def split_model(layout: Layout, fragments: int | Names) -> list[Fragment]:
    """Return the fragments of a model.

    Args:
        layout: Parameters of the model.
        fragments: Their number, see `stride`. Or the names of the parameters of each.

    Raises:
        ValueError: If there are fewer parameters than fragments, or the names are not those of
            the model.
    """
    if layout.names == (UNNAMED,):
        if not isinstance(fragments, int):
            raise ValueError(
                f"step: fragments must be a number if x is a single array, got {fragments!r}"
            )
        offsets = range_offsets(layout.size, fragments)
        ranges = [(int(a), int(b)) for a, b in itertools.pairwise(offsets)]
        if fragments == 1:
            return [Fragment((), layout.shapes, (ranges[0],))]
        return [Fragment((), ((b - a,),), ((a, b),)) for a, b in ranges]
    if isinstance(fragments, int):
        sizes = [math.prod(shape) for shape in layout.shapes]
        groups = stride(layout.names, fragments, sizes)
    else:
        groups = list(fragments)
    if sorted(name for group in groups for name in group) != sorted(layout.names):
        raise ValueError(
            f"step: fragments must contain each parameter of the model once, got "
            f"{', '.join(name for group in groups for name in group)}"
        )
    return [_fragment(layout, group) for group in groups]


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
    if len(names) < fragments:
        raise ValueError(
            f"step: fragments must be at most the number of parameters, {len(names)}, got "
            f"{fragments}"
        )
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


def _fragment(layout: Layout, group: Sequence[str]) -> Fragment:
    offsets = layout.offsets
    places = [layout.names.index(name) for name in sorted(group)]
    return Fragment(
        tuple(layout.names[i] for i in places),
        tuple(layout.shapes[i] for i in places),
        _merged([(offsets[i], offsets[i + 1]) for i in places]),
    )


def _merged(ranges: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return ascending ranges with adjacent ones joined."""
    joined: list[tuple[int, int]] = []
    for start, end in ranges:
        if joined and joined[-1][1] == start:
            joined[-1] = joined[-1][0], end
        else:
            joined.append((start, end))
    return tuple(joined)


def _block(name: str) -> str:
    """Return the path up to its first number; empty if there is none."""
    found = re.match(r"(?:[^.]*\.)*?\d+(?=\.)", name)
    return found[0] if found else ""


def _module(name: str) -> str:
    return name.rpartition(".")[0]


def _natural(name: str) -> list[tuple[bool, int | str]]:
    """Return a key that sorts numbers in a path by value."""
    return [(p.isdecimal(), int(p) if p.isdecimal() else p) for p in name.split(".")]
