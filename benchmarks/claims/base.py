"""Claims: a sentence, an experiment, and a verdict on the saved rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tables import newest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

Row = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """Verdict on the rows of a claim.

    Attributes:
        hit: Whether the claim holds here.
        ours: Our numbers, in one line.
        why: Reason for the verdict.
        details: Section below the table, in markdown.
        complete: Whether all rows that the verdict needs are there.
    """

    hit: bool
    ours: str
    why: str
    details: str
    complete: bool = True

    @property
    def verdict(self) -> str:
        """Hit, miss, or open if rows are missing."""
        if not self.complete:
            return "open"
        return "hit" if self.hit else "miss"


@dataclass(frozen=True)
class Claim:
    """One claim and its experiment.

    Attributes:
        number: Position in the list of claims.
        title: Title of the section.
        text: The claim.
        source: Where the claim was made.
        how: How our answer is obtained.
        seed: First seed of the experiment.
        cases: Arguments of each part of the experiment.
        measure: Returns the rows of one case.
        answer: Returns the verdict on all rows.
        figures: Drawing functions by file name without suffix.
        also: Commands that measure further files whose rows are used, by name.
    """

    number: int
    title: str
    text: str
    source: str
    how: str
    seed: int
    cases: Sequence[tuple[Any, ...]]
    measure: Callable[..., list[Row]]
    answer: Callable[[list[Row]], Answer]
    figures: dict[str, Callable[[list[Row]], Figure]]
    also: Mapping[str, str] = field(default_factory=dict)

    @property
    def command(self) -> str:
        """Command that measures the claim."""
        return f"python benchmarks/run_claims.py {self.number}"

    @property
    def file(self) -> str:
        """Name of the file with the saved rows, without its date."""
        return f"claim-{self.number}"


def kept(claim: Claim, results: Path) -> dict[str, Any] | str:
    """Return the newest rows of all files of a claim, with the environment of the first.

    If a file is missing, return the command that measures it.
    """
    files = {claim.file: claim.command, **claim.also}
    found = {name: newest(name, results) for name in files}
    if missing := [files[name] for name, data in found.items() if data is None]:
        return missing[0]
    rows = [row for data in found.values() for row in data["rows"]]
    return {"environment": found[claim.file]["environment"], "rows": rows}


def markdown(head: list[str], lines: list[list[str]]) -> str:
    """Return a table with the first column left-aligned and the others right-aligned."""
    rule = [":--", *["--:"] * (len(head) - 1)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [head, rule, *lines])
