"""Vowpal Wabbit with its Python package, which runs the program: a file and a cache.

Rows come from the cache in every epoch, read by a second thread; nothing stays in memory. Each
feature has a weight of its own: indices are not hashed, and the table is large enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .base import REPEATS, Curve, Data, Found, Judge, timed

if TYPE_CHECKING:
    from pathlib import Path

    from sparcml.linear import Rows

NAME = "Vowpal Wabbit"
THREADS = "1, and 1 to read"
HELD = "its binary cache, a file"
PASSES = (1, 2, 3, 4, 6, 8)

DECAY = "--power_t 0 --decay_learning_rate"
GRID = {
    "spam": [
        "-l 0.5",
        "-l 4",
        "--adaptive -l 0.3",
        "--adaptive -l 0.5",
        "--adaptive -l 1",
        "--adaptive --invariant -l 1",
        f"--sgd -l 8 {DECAY} 0.6",
        "--coin",
    ],
    "URL-like": [
        "-l 0.5",
        "-l 2",
        "--adaptive -l 0.1",
        f"--sgd -l 0.03 {DECAY} 0.7",
        f"--sgd -l 0.06 {DECAY} 0.6",
        f"--sgd -l 0.1 {DECAY} 0.4",
        f"--invariant -l 0.1 {DECAY} 0.6",
        "--invariant -l 5 --power_t 0.35",
    ],
}


def run(data: Data) -> Found:
    """Run from the start for each number of epochs, with an existing cache."""
    from vowpalwabbit import __version__

    write(data.folder / "train.vw", data.rows(data.train))
    write(data.folder / "held-out.vw", data.rows(data.held_out))
    bits = int(np.ceil(np.log2(data.features + 1)))
    common = (
        f"--quiet --loss_function logistic -b {bits} --holdout_off "
        f"-d {data.folder / 'train.vw'} --cache_file {data.folder / 'vw.cache'}"
    )
    reading, _ = timed(lambda: _do(f"{common} --noop -k"))
    found, judge = Found(__version__, reading, runs=REPEATS), Judge(data)
    for setting in data.some(GRID[data.name]):
        curve = Curve(setting)
        for passes in data.some(list(PASSES)):
            model = data.folder / "vw.model"
            told = f"{common} --passes {passes} {setting} -f {model}"
            seconds = min(_do(told) for _ in range(REPEATS))
            curve.add(passes, seconds, judge.of_margins(_predicted(data, model)))
        found.curves.append(curve)
    return found


def write(path: Path, rows: Rows) -> None:
    """Write rows as text of Vowpal Wabbit."""
    with path.open("w") as file:
        for i, label in enumerate(rows.labels):
            here = slice(rows.indptr[i], rows.indptr[i + 1])
            pairs = zip(
                rows.indices[here].tolist(), rows.values[here].tolist(), strict=True
            )
            entries = " ".join(f"{j}:{v:.9g}" if v != 1 else str(j) for j, v in pairs)
            file.write(f"{label:g} | {entries}\n")


def _do(arguments: str) -> float:
    """Return the seconds until all rows are processed; the model is written later."""
    from vowpalwabbit import Workspace

    seconds, program = timed(lambda: Workspace(arguments))
    program.finish()
    return seconds


def _predicted(data: Data, model: Path) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    out = data.folder / "vw.margins"
    _do(f"--quiet -t -i {model} -d {data.folder / 'held-out.vw'} -p {out}")
    return np.loadtxt(out, dtype=np.float64, ndmin=1)
