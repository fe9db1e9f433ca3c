"""What the benchmarks share: the clock, the table, the environment and the JSON."""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import typer

from sparcml import __version__, kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import ArrayLike

Row = dict[str, Any]

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True)
class Clock:
    """How long to measure: at least so many seconds and so many runs."""

    seconds: float = 0.25
    runs: int = 7

    def side_by_side(self, *jobs: Callable[[], object]) -> list[list[float]]:
        """Seconds of each job's runs, one after the other, so that noise meets all."""
        for job in jobs:
            job()  # warm-up: first touch of memory, caches, branch history
        times: list[list[float]] = [[] for _ in jobs]
        start, end = time.perf_counter(), self.seconds * len(jobs)
        while len(times[0]) < self.runs or time.perf_counter() - start < end:
            for job, spent in zip(jobs, times, strict=True):
                begun = time.perf_counter()
                job()
                spent.append(time.perf_counter() - begun)
        return times


QUICK = Clock(0.005, 3)


def quantile(times: ArrayLike, q: float) -> float:
    """The q-quantile in microseconds."""
    return float(np.quantile(np.asarray(times, np.float64), q)) * 1e6


class Column(NamedTuple):
    """One column of a table: where its value is, and how it looks."""

    key: str
    title: str
    unit: str
    width: int
    spec: str = ""

    def cell(self, row: Row) -> str:
        """The value as text; what is not known is a dash."""
        value = row[self.key]
        return "-" if value is None else format(value, self.spec)


def header(columns: Sequence[Column]) -> Iterator[str]:
    """Two lines: titles, then units."""
    yield "#" + _aligned(columns, [column.title for column in columns])[1:]
    yield "#" + _aligned(columns, [column.unit for column in columns])[1:]


def line(columns: Sequence[Column], row: Row) -> str:
    """One row of the table."""
    return _aligned(columns, [column.cell(row) for column in columns])


def _aligned(columns: Sequence[Column], cells: Sequence[str]) -> str:
    first = f"  {cells[0]:{columns[0].width}}"
    rest = zip(columns[1:], cells[1:], strict=True)
    return "  ".join([first, *(f"{text:>{c.width}}" for c, text in rest)])


def environment(options: str, seed: int, **more: str) -> dict[str, str]:
    """What a number means nothing without."""
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
    """The commit this package was checked out at; not that of a project around it."""
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
    """The same rows and environment as printed, for programs."""
    lines = ",\n    ".join(json.dumps(_rounded(row)) for row in rows)
    head = json.dumps(facts, indent=2).replace("\n", "\n  ")
    path.write_text(f'{{\n  "environment": {head},\n  "rows": [\n    {lines}\n  ]\n}}\n')


def _rounded(row: Row) -> Row:
    """Six digits of a measurement say more than it knows."""
    return {
        key: float(f"{value:.6g}") if isinstance(value, float) else value
        for key, value in row.items()
    }


def check_json(path: Path | None) -> Path | None:
    """Complain about an unusable file before the measurement, not after."""
    if path is not None and not path.absolute().parent.is_dir():
        raise typer.BadParameter(f"no folder for {str(path)!r}")
    return path


def parse_size(text: str) -> int:
    """A number of values; K, M and G are powers of 1024."""
    unit = text[-1:].upper()
    digits = text[:-1] if unit in _UNITS else text
    if not digits.isdecimal() or int(digits) < 1:
        raise typer.BadParameter(f"a size is a number such as 64K or 16M, got {text!r}")
    return int(digits) * _UNITS.get(unit, 1)


def parse_sizes(text: str) -> list[int]:
    """Sizes set apart by commas; FIRST:LAST goes up by factors of 4."""
    sizes = []
    for part in text.split(","):
        first, _, last = part.partition(":")
        size = parse_size(first)
        end = parse_size(last) if last else size
        if end < size:
            raise typer.BadParameter(f"sizes must go up, got {part!r}")
        while size <= end:
            sizes.append(size)
            size *= 4
    return sizes
