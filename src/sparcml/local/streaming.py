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
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..aggregate.flat_model import UNNAMED
from ..stream import range_offsets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
        ranges: Start and end of each part in the flat model.
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

    def write(self, values: Values, new: Values) -> None:
        """Set the fragment's values of a flat model."""
        first = 0
        for start, end in self.ranges:
            values[start:end] = new[first : first + end - start]
            first += end - start

    def split(self, values: Values) -> Values | dict[str, Values]:
        """Return the fragment's values by parameter, or as they are if it has no names."""
        if not self.names:
            return values.reshape(self.shapes[0])
        parts: dict[str, Values] = {}
        first = 0
        for name, shape, (start, end) in zip(
            self.names, self.shapes, self.ranges, strict=True
        ):
            parts[name] = values[first : first + end - start].reshape(shape)
            first += end - start
        return parts

    def join(self, parts: NDArray[np.generic] | Mapping[str, Values]) -> Values:
        """Return the values of `split` as one flat vector."""
        if isinstance(parts, np.ndarray):
            return parts.reshape(-1)
        return np.concatenate([np.ravel(parts[name]) for name in self.names])


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
        fragments: Their number: layers are dealt to them in turn, and parameters outside of
            the numbered layers go to the first. Or the names of the parameters of each.

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
    groups = (
        stride(layout.names, fragments) if isinstance(fragments, int) else list(fragments)
    )
    if sorted(name for group in groups for name in group) != sorted(layout.names):
        raise ValueError(
            f"step: fragments must contain each parameter of the model once, got "
            f"{', '.join(name for group in groups for name in group)}"
        )
    return [_fragment(layout, group) for group in groups]


def stride(names: Sequence[str], fragments: int) -> list[tuple[str, ...]]:
    """Return the names of each fragment: layer i goes to fragment i modulo their number.

    A layer is what shares the path up to its first number, such as `blocks.3`. If there are
    fewer layers than fragments it is a module, and else a single parameter.
    """
    if len(names) < fragments:
        raise ValueError(
            f"step: fragments must be at most the number of parameters, {len(names)}, got "
            f"{fragments}"
        )
    for layer_of in (_block, _module, str):
        layers = sorted({layer for n in names if (layer := layer_of(n))}, key=_natural)
        if len(layers) >= fragments:
            break
    place = {layer: i % fragments for i, layer in enumerate(layers)}
    groups: list[list[str]] = [[] for _ in range(fragments)]
    for name in sorted(names):
        groups[place.get(layer_of(name), 0)].append(name)
    return [tuple(group) for group in groups]


def _fragment(layout: Layout, group: Sequence[str]) -> Fragment:
    offsets = layout.offsets
    places = [layout.names.index(name) for name in sorted(group)]
    return Fragment(
        tuple(layout.names[i] for i in places),
        tuple(layout.shapes[i] for i in places),
        tuple((offsets[i], offsets[i + 1]) for i in places),
    )


def _block(name: str) -> str:
    """Return the path up to its first number; empty if there is none."""
    found = re.match(r"(?:[^.]*\.)*?\d+(?=\.)", name)
    return found[0] if found else ""


def _module(name: str) -> str:
    return name.rpartition(".")[0]


def _natural(name: str) -> list[tuple[bool, int | str]]:
    """Return a key that sorts numbers in a path by value."""
    return [(p.isdecimal(), int(p) if p.isdecimal() else p) for p in name.split(".")]
