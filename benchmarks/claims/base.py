"""What a claim is: a sentence, an experiment, and a verdict on the kept rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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

    @property
    def command(self) -> str:
        """What measures it anew."""
        return f"python benchmarks/run_claims.py {self.number}"

    @property
    def file(self) -> str:
        """What the kept rows are called, after their date."""
        return f"claim-{self.number}"


def markdown(head: list[str], lines: list[list[str]]) -> str:
    """A table with names to the left and numbers to the right."""
    rule = [":--", *["--:"] * (len(head) - 1)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [head, rule, *lines])
