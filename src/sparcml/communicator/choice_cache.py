"""Cache of the algorithms that `auto` has chosen, so that ranks need not agree in every call.

Training reduces vectors of the same few shapes again and again, and their density changes
slowly. A choice therefore holds for the next 32 calls with the same shape, as long as the
nnz of the results stays similar, and for twice as many, up to 256, each time that the ranks
choose the same again. If results change, each call agrees again, until eight results in
a row are similar: calls of one shape may alternate between densities. All ranks make the same
calls and get the same results, so that their caches stay the same.

A dense result does not say how many of its values are zero, and dsar_split_allgather has no
other results. Its nnz is therefore estimated from a sample, at positions that depend on its
size only, so that all ranks get the same estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from ..quantize import Quantizer
    from ..stream import Stream

MIN_CALLS, MAX_CALLS = 32, 256  # calls that a choice holds for
SIMILAR_CALLS = 8  # with similar results, after which a choice holds again
MAX_CASES = 256  # cached choices per communicator
SAMPLE = 4096  # values of a dense result that are looked at: enough from 1 % on


class Case(NamedTuple):
    """What the calls that share a choice have in common."""

    algorithm: str
    size: int
    block: int
    dtype: np.dtype[Any]
    op: str
    quantize: Quantizer | None


@dataclass(slots=True)
class Choice:
    """The algorithm of similar calls, and what has become of it."""

    algorithm: str | None = None
    calls: int = 0  # since it was chosen
    max_calls: int = MIN_CALLS
    result_nnz: int | None = None  # of the first result since then, or since a change
    recheck: int = 0  # further calls that must agree, since results have changed

    def record(self, result: Stream) -> None:
        """Record the nnz of a result, and drop the choice if it has changed by 2x."""
        self.calls += 1
        result_nnz = estimated_nnz(result)
        if self.result_nnz is None:
            self.result_nnz = result_nnz
        elif not self.result_nnz <= 2 * result_nnz <= 4 * self.result_nnz:
            self.recheck, self.algorithm = SIMILAR_CALLS, None
            self.result_nnz = result_nnz


class ChoiceCache:
    """Choices of one communicator, by case: the properties that calls have in common."""

    def __init__(self) -> None:
        self._choices: dict[Hashable, Choice] = {}
        self._pinned: dict[Hashable, str] = {}

    def choice(self, case: Hashable) -> str | None:
        """Return the algorithm that was chosen for a case, if it still holds."""
        choice = self._choices.get(case)
        if choice is None or choice.recheck or choice.calls >= choice.max_calls:
            return None
        return choice.algorithm

    def store(self, case: Hashable, algorithm: str | None) -> None:
        """Store a choice that the ranks have agreed on; the oldest case may be dropped.

        Args:
            case: Properties of the call.
            algorithm: Name of the algorithm, or None if the ranks must agree in each call.
        """
        choice = self._choices.pop(case, Choice())
        is_same = choice.algorithm == algorithm and not choice.recheck and choice.calls
        choice.max_calls = min(2 * choice.max_calls, MAX_CALLS) if is_same else MIN_CALLS
        choice.algorithm, choice.calls = algorithm, 0
        if choice.recheck:
            choice.recheck -= 1
        else:
            choice.result_nnz = None
        self._choices[case] = choice
        if len(self._choices) > MAX_CASES:
            self._choices.pop(next(iter(self._choices))).algorithm = None

    def record(self, case: Hashable, result: Stream) -> Choice | None:
        """Record the nnz of a result; return the choice, or None if the caller made it."""
        choice = self._choices.get(case)
        if choice is not None:
            choice.record(result)
        return choice

    def pinned(self, case: Hashable) -> str | None:
        """Return the algorithm that was pinned for a case."""
        return self._pinned.get(case)

    def pin(self, case: Hashable, algorithm: str) -> None:
        """Store a choice that holds until the cache is cleared."""
        self._pinned[case] = algorithm

    def clear(self) -> None:
        """Discard all choices."""
        self._choices.clear()
        self._pinned.clear()


def estimated_nnz(result: Stream) -> int:
    """Return the nnz of a result; zeros of a dense one are left out, estimated if it is long."""
    if not result.is_dense:
        return result.nnz
    values = result.raw_values
    sample = values if values.size <= SAMPLE else values[_positions(values.size)]
    nonzeros = int(np.count_nonzero(sample != result.fill))
    return -(-result.nnz * nonzeros // max(1, sample.size))


@lru_cache(maxsize=64)
def _positions(size: int) -> NDArray[np.uint64]:
    """Return positions that are spread evenly, without the period of a row or column."""
    turns = np.arange(SAMPLE, dtype=np.uint64) * np.uint64(2654435769) % np.uint64(2**32)
    positions: NDArray[np.uint64] = np.sort(turns * np.uint64(size) >> np.uint64(32))
    return positions
