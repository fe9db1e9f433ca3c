"""Cache of the algorithms that `auto` has chosen, so that ranks need not agree in every call.

Training reduces vectors of the same few shapes again and again, and their density changes
slowly. A choice therefore holds for the next calls with the same shape, as long as the
nnz of the results stays similar. If it does not, each call agrees again, until eight results in
a row are similar: calls of one shape may alternate between densities. All ranks make the same
calls and get the same results, so that their caches stay the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

MAX_CALLS = 32  # calls that a choice holds for
SIMILAR_CALLS = 8  # with similar results, after which a choice holds again
MAX_CASES = 256  # cached choices per communicator


@dataclass(slots=True)
class _Choice:
    algorithm: str | None = None
    calls: int = 0  # since it was chosen
    result_nnz: int | None = None  # of the first result since then, or since a change
    recheck: int = 0  # further calls that must agree, since results have changed


class ChoiceCache:
    """Choices of one communicator, by case: the properties that calls have in common."""

    def __init__(self) -> None:
        self._choices: dict[Hashable, _Choice] = {}
        self._pinned: dict[Hashable, str] = {}

    def choice(self, case: Hashable) -> str | None:
        """Return the algorithm that was chosen for a case, if it still holds."""
        choice = self._choices.get(case)
        if choice is None or choice.recheck or choice.calls >= MAX_CALLS:
            return None
        return choice.algorithm

    def store(self, case: Hashable, algorithm: str | None) -> None:
        """Store a choice that the ranks have agreed on; the oldest case may be dropped.

        Args:
            case: Properties of the call.
            algorithm: Name of the algorithm, or None if the ranks must agree in each call.
        """
        choice = self._choices.pop(case, _Choice())
        choice.algorithm, choice.calls = algorithm, 0
        if choice.recheck:
            choice.recheck -= 1
        else:
            choice.result_nnz = None
        self._choices[case] = choice
        if len(self._choices) > MAX_CASES:
            del self._choices[next(iter(self._choices))]

    def record(self, case: Hashable, result_nnz: int) -> None:
        """Record the nnz of a result, and drop the choice if it has changed by 2x."""
        choice = self._choices.get(case)
        if choice is None:  # the caller named the algorithm
            return
        choice.calls += 1
        if choice.result_nnz is None:
            choice.result_nnz = result_nnz
        elif not choice.result_nnz <= 2 * result_nnz <= 4 * choice.result_nnz:
            choice.recheck, choice.algorithm = SIMILAR_CALLS, None
            choice.result_nnz = result_nnz

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
