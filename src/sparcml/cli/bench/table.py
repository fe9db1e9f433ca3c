"""The table of `sparcml bench allreduce`, printed by the first rank row by row."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from sparcml.cli.bench.common import Column, header, line, write_json

if TYPE_CHECKING:
    from pathlib import Path

    from sparcml import Communicator
    from sparcml.cli.bench.common import Row

COLUMNS = (
    Column("label", "algorithm", "", 27),
    Column("size", "size", "(B)", 9, "d"),
    Column("density", "density", "(%)", 7, ".3g"),
    Column("nnz", "nnz", "", 8, "d"),
    Column("wire", "wire", "(B)", 9, "d"),
    Column("ratio", "ratio", "", 6, ".1f"),
    Column("p25", "p25", "(us)", 8, ".0f"),
    Column("p50", "p50", "(us)", 8, ".0f"),
    Column("p75", "p75", "(us)", 8, ".0f"),
    Column("p99", "p99", "(us)", 8, ".0f"),
    Column("algbw", "algbw", "(GB/s)", 7, ".3f"),
    Column("busbw", "busbw", "(GB/s)", 7, ".3f"),
    Column("of_bound", "link", "(%)", 4, ".0f"),
    Column("of_lower", "least", "(%)", 5, ".0f"),
    Column("speedup", "vs dense", "", 8, ".2f"),
    Column("wrong", "#wrong", "", 6, "d"),
)


def label(row: Row) -> str:
    """The algorithm; of `auto`, what it chose; and how values were coded."""
    name, choice, coding = row["algorithm"], row["choice"], row["quantize"]
    text = str(name) if name == choice else f"{name}: {choice}"
    return text if coding is None else f"{text}, {coding}"


class Progress:
    """What goes on at the moment, on a line that the next output writes over."""

    def __init__(self, shown: bool) -> None:
        self._shown = shown

    def show(self, what: str) -> None:
        """Replace what was there."""
        if self._shown:
            sys.stderr.write(f"  {what} ...".ljust(40) + "\r")
            sys.stderr.flush()


class Report:
    """Rows as they come, on one rank; silent on the others."""

    def __init__(self, comm: Communicator) -> None:
        self._speaks = comm.rank == 0
        self.rows: list[Row] = []

    @property
    def code(self) -> int:
        """What to exit with: every rank knows every row."""
        return int(any(row["wrong"] for row in self.rows))

    def start(self, facts: dict[str, str]) -> None:
        """The environment and the head of the table."""
        for name, value in facts.items():
            self._say(f"# {name}: {value}")
        for text in header(COLUMNS):
            self._say(text)

    def add(self, row: Row) -> None:
        """One more row."""
        self.rows.append(row)
        self._say(line(COLUMNS, row | {"label": label(row)}))

    def end(self, facts: dict[str, str], path: Path | None) -> None:
        """The verdict, and the file."""
        wrong = sum(bool(row["wrong"]) for row in self.rows)
        if wrong:
            self._say(f"# FAILED: wrong sums in {wrong} of {len(self.rows)} rows")
        else:
            self._say(f"# passed: all {len(self.rows)} rows have the sum that is due")
        if self._speaks and path is not None:
            write_json(path, facts, self.rows)

    def _say(self, text: str) -> None:
        if self._speaks:
            typer.echo(text)
