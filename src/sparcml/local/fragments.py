"""Fragments of a model: parts that are exchanged one after the other."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import buffer_pool
from ..aggregate.flat_model import UNNAMED, join_adjacent
from ..aggregate.state import RESIDUAL, key, keys_of
from ..stream import range_offsets
from .streaming import stride

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ..aggregate.flat_model import Layout
    from ..stream.arrays import Values

Names = tuple[tuple[str, ...], ...]
SHOWN = 5  # names in an error message


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


def joined_residual(
    part: Fragment, entries: Mapping[str, NDArray[Any]], dtype: np.dtype[Any]
) -> Values | None:
    """Return the flat residual of a fragment; None if it is zero or of another fragment.

    Args:
        part: The fragment.
        entries: State of an aggregation method: `residual`, or `residual/<parameter>`.
        dtype: Type of the result.
    """
    nonzero = {k for k in keys_of(entries, RESIDUAL) if entries[k].any()}
    if nonzero == {RESIDUAL} and entries[RESIDUAL].size == part.size:
        return np.array(entries[RESIDUAL], dtype).reshape(-1)
    places = {
        key(RESIDUAL, n): math.prod(s)
        for n, s in zip(part.names, part.shapes, strict=False)
    }
    if not nonzero or any(places.get(k) != entries[k].size for k in nonzero):
        return None
    pieces = [
        np.ravel(entries[k]) if k in nonzero else np.zeros(n) for k, n in places.items()
    ]
    return np.concatenate(pieces).astype(dtype)


def as_names(function: str, fragments: Iterable[Any]) -> Names:
    """Return the names of each fragment as tuples."""
    groups = []
    for group in fragments:
        is_names = isinstance(group, list | tuple) and all(
            isinstance(n, str) for n in group
        )
        if not is_names:
            raise TypeError(
                f"{function}: fragments must be a number, or a list of names per fragment, got "
                f"{group!r} in it; put the names of each fragment in a list of their own"
            )
        groups.append(tuple(group))
    return tuple(groups)


def split_model(function: str, layout: Layout, fragments: int | Names) -> list[Fragment]:
    """Return the fragments of a model.

    Args:
        function: Name of the method, for error messages.
        layout: Parameters of the model.
        fragments: Their number, see `stride`. Or the names of the parameters of each.

    Raises:
        ValueError: If there are fewer parameters than fragments, or the names are not those of
            the model.
    """
    if layout.names == (UNNAMED,):
        if not isinstance(fragments, int):
            raise ValueError(
                f"{function}: fragments must be a number if x is a single array, got "
                f"{fragments!r}; pass x as a mapping from names to arrays, or a number"
            )
        offsets = range_offsets(layout.size, fragments)
        ranges = [(int(a), int(b)) for a, b in itertools.pairwise(offsets)]
        if fragments == 1:
            return [Fragment((), layout.shapes, (ranges[0],))]
        return [Fragment((), ((b - a,),), ((a, b),)) for a, b in ranges]
    if isinstance(fragments, int):
        sizes = [math.prod(shape) for shape in layout.shapes]
        if len(layout.names) < fragments:
            raise ValueError(
                f"{function}: fragments must be at most the number of parameters, "
                f"{len(layout.names)}, got {fragments}; reduce it"
            )
        groups = stride(layout.names, fragments, sizes)
    else:
        groups = list(fragments)
        _check_names(function, layout.names, groups)
    return [_fragment(layout, group) for group in groups]


def _check_names(
    function: str, names: Sequence[str], groups: Sequence[Sequence[str]]
) -> None:
    """Raise a ValueError unless each parameter is in one fragment, and none is empty."""
    given = Counter(name for group in groups for name in group)
    wrong = {
        "lack": sorted(set(names) - set(given)),
        "have unknown": sorted(set(given) - set(names)),
        "repeat": sorted(name for name, count in given.items() if count > 1),
        "have an empty fragment": [str(i) for i, group in enumerate(groups) if not group],
    }
    found = [f"some that {what} {_listed(them)}" for what, them in wrong.items() if them]
    if found:
        raise ValueError(
            f"{function}: fragments must contain each parameter of the model once, got "
            f"{' and '.join(found)}; use the names of model.named_parameters()"
        )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} others" if len(names) > SHOWN else ""
    return ", ".join(map(repr, names[:SHOWN])) + more


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
