"""Results of a benchmark: quantiles, an aligned text table, and a JSON file."""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sparcml import __version__, kernels

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike

Row = dict[str, Any]

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


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


def environment(options: str, seed: int, **more: str) -> dict[str, str]:
    """Return versions, machine and options of a measurement."""
    facts = {
        "sparcml": __version__,
        "commit": _commit(),
        "date": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d"),
        "cpu": f"{_cpu()}, {os.cpu_count()} cores",
        "isa": kernels.isa(),
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
    return facts | more | {"options": options, "seed": str(seed)}


def _commit() -> str:
    """Return the commit of the checkout that holds this package."""
    try:
        _git("ls-files", "--error-unmatch", Path(__file__).name)
        changed = _git("status", "--porcelain", "--", ":/src", ":/cpp")
        return _git("rev-parse", "--short", "HEAD") + ("-dirty" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "not a checkout"


def _git(*words: str) -> str:
    command = ["git", "-C", str(Path(__file__).parent), *words]
    return subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout.strip()


def _cpu() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine()
    names = [row.partition(":")[2] for row in text.splitlines() if "model name" in row]
    return names[0].strip() if names else platform.machine()


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


def parse_size(text: str) -> int:
    """Parse a number of values such as 64K; K, M and G are powers of 1024."""
    unit = text[-1:].upper()
    digits = text[:-1] if unit in _UNITS else text
    if not digits.isdecimal() or int(digits) < 1:
        raise ValueError(f"size must be a number such as 64K or 16M, got {text!r}")
    return int(digits) * _UNITS.get(unit, 1)
