"""Saved rows of the accuracy benchmark: dated JSON files in benchmarks/results."""

from __future__ import annotations

import datetime as dt
import fcntl
import json
import os
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sparcml.bench.results import write_json
from sparcml.environment import describe

from .jobs import KEY, key_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .jobs import Key, Row

RESULTS = Path(__file__).resolve().parents[1] / "results"
DATED = re.compile(r"\d{4}-\d\d-\d\d-accuracy\.json")


def load(folder: Path = RESULTS) -> list[Row]:
    """Return the rows of all files; of rows with equal keys, the newest."""
    rows: dict[Key, Row] = {}
    for path in sorted(folder.glob("*-accuracy.json")):
        if DATED.fullmatch(path.name):
            rows |= {key_of(row): row for row in _rows(path)}
    return list(rows.values())


def save(row: Row, torch: str, folder: Path = RESULTS) -> Path:
    """Add a row to the file of today, or replace the row with the same key.

    The file is replaced at once, and only one process writes at a time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    date = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d")
    path = folder / f"{date}-accuracy.json"
    with _locked(folder):
        rows = [old for old in _rows(path) if key_of(old) != key_of(row)]
        new = path.with_suffix(".new")
        write_json(new, describe("", 0, torch=torch), [*rows, row])
        new.replace(path)
    return path


def _rows(path: Path) -> list[Row]:
    if not path.exists():
        return []
    rows: list[Row] = json.loads(path.read_text())["rows"]
    return [row for row in rows if row.keys() >= set(KEY)]


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
