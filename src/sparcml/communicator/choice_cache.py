"""Cache of the algorithms that `auto` has chosen, so that ranks need not agree in every call.

Training reduces vectors of the same few shapes again and again, and their density changes
slowly. A choice therefore holds for the next 32 calls with the same shape, as long as the
nnz of the results stays similar, and for twice as many, up to 256, each time that the ranks
choose the same again. If results change, each call agrees again, until eight results in
a row are similar: calls of one shape may alternate between densities. All ranks make the same
calls and get the same results, so that their caches stay the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable

    import numpy as np

    from ..quantize import Quantizer

MIN_CALLS, MAX_CALLS = 32, 256  # calls that a choice holds for
SIMILAR_CALLS = 8  # with similar results, after which a choice holds again
MAX_CASES = 256  # cached choices per communicator


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

    def record(self, result_nnz: int) -> None:
        """Record the nnz of a result, and drop the choice if it has changed by 2x."""
        self.calls += 1
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

    def record(self, case: Hashable, result_nnz: int) -> Choice | None:
        """Record the nnz of a result; return the choice, or None if the caller made it."""
        choice = self._choices.get(case)
        if choice is not None:
            choice.record(result_nnz)
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
