"""Results of a benchmark: quantiles, an aligned text table, and a JSON file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import ArrayLike

Row = dict[str, Any]


def quantile(times: ArrayLike, q: float) -> float:
    """Return the q-quantile of times in seconds, in microseconds."""
    return float(np.quantile(np.asarray(times, np.float64), q)) * 1e6


class Column(NamedTuple):
    """One column of a text table.

    Attributes:
        key: Key of the value in a row.
        title: First line of the head.
        unit: Second line of the head.
        width: Width in characters.
        spec: Format specification of the value.
    """

    key: str
    title: str
    unit: str
    width: int
    spec: str = ""

    def cell(self, row: Row) -> str:
        """Return the value as text, or a dash for None."""
        value = row[self.key]
        return "-" if value is None else format(value, self.spec)


def header(columns: Sequence[Column]) -> Iterator[str]:
    """Yield the two lines of the head: titles, then units."""
    yield "#" + _aligned(columns, [column.title for column in columns])[1:]
    yield "#" + _aligned(columns, [column.unit for column in columns])[1:]


def line(columns: Sequence[Column], row: Row) -> str:
    """Return one row of the table."""
    return _aligned(columns, [column.cell(row) for column in columns])


def _aligned(columns: Sequence[Column], cells: Sequence[str]) -> str:
    first = f"  {cells[0]:{columns[0].width}}"
    rest = zip(columns[1:], cells[1:], strict=True)
    return "  ".join([first, *(f"{text:>{c.width}}" for c, text in rest)])


def label(row: Row) -> str:
    """Return the algorithm, the choice of `auto`, and the quantizer of an allreduce row."""
    name, choice, quantizer = row["algorithm"], row["choice"], row["quantize"]
    text = str(name) if name == choice else f"{name}: {choice}"
    return text if quantizer is None else f"{text}, {quantizer}"


def write_json(path: Path, facts: dict[str, str], rows: Sequence[Row]) -> None:
    """Write the environment and the rows as JSON."""
    lines = ",\n    ".join(json.dumps(_rounded(row)) for row in rows)
    head = json.dumps(facts, indent=2).replace("\n", "\n  ")
    path.write_text(f'{{\n  "environment": {head},\n  "rows": [\n    {lines}\n  ]\n}}\n')


def _rounded(row: Row) -> Row:
    """Round floats to six digits, more than a measurement resolves."""
    return {
        key: float(f"{value:.6g}") if isinstance(value, float) else value
        for key, value in row.items()
    }
