"""What a claim is: a sentence, an experiment, and a verdict on the kept rows."""

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
    """What the rows say.

    Attributes:
        hit: Whether the claim holds here.
        ours: Our numbers, in a line.
        why: The reason for the verdict.
        details: What is shown below, as markdown.
    """

    hit: bool
    ours: str
    why: str
    details: str


@dataclass(frozen=True)
class Claim:
    """One claim and how it is answered.

    Attributes:
        number: Its place in the list of claims.
        title: What it is about.
        text: The claim.
        source: Who says so.
        how: How our answer is obtained.
        seed: The first seed of the experiment.
        cases: The arguments of each part of the experiment.
        measure: One part: rows from the arguments of a case.
        answer: The verdict on all rows.
        figures: File names without suffix, and how to draw them from the rows.
        also: Other kept files whose rows it judges as well, and what measures them.
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
        """What measures it anew."""
        return f"python benchmarks/run_claims.py {self.number}"

    @property
    def file(self) -> str:
        """What the kept rows are called, after their date."""
        return f"claim-{self.number}"


def kept(claim: Claim, results: Path) -> dict[str, Any] | str:
    """The newest rows of all its files, with the first one's environment.

    If one is missing, the command that measures it.
    """
    files = {claim.file: claim.command, **claim.also}
    found = {name: newest(name, results) for name in files}
    if missing := [files[name] for name, data in found.items() if data is None]:
        return missing[0]
    rows = [row for data in found.values() for row in data["rows"]]
    return {"environment": found[claim.file]["environment"], "rows": rows}


def markdown(head: list[str], lines: list[list[str]]) -> str:
    """A table with names to the left and numbers to the right."""
    rule = [":--", *["--:"] * (len(head) - 1)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [head, rule, *lines])
