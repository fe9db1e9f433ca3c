"""One case to compress a vector: what to run, what comes out, what it must reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from harness.stopwatch import Stopwatch, copy_of

from sparcml.bench.results import Row, quantile

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from compressors.gradients import Vector

    Floats = NDArray[Any]


@dataclass(frozen=True)
class Outcome:
    """What a case to compress made of a vector.

    Attributes:
        decoded: What the others would see, dense; None if nothing is compressed.
        nbytes: What would travel.
        wrong: Values that break a rule which this method must keep.
    """

    decoded: Floats | None
    nbytes: int | None
    wrong: int = 0


class Floor(NamedTuple):
    """What a case must reach: so many copies of the vector at most, and more."""

    copies: float | None = None
    peer: str | None = None  # a line of the same table, by method and part
    faster: float = 1.0  # how many times faster than that

    def __str__(self) -> str:
        parts = [] if self.copies is None else [f"<= {self.copies}x memcpy"]
        parts += [] if self.peer is None else [f">= {self.faster:g}x {self.peer}"]
        return ", ".join(parts)


NONE = Floor()
FLOOR_SIZE = 1 << 24  # values for which the floors are set


@dataclass(frozen=True)
class Case:
    """One line of the table.

    Attributes:
        name: The method, with its settings.
        part: What is timed: select, take, encode, decode, step or add.
        run: The timed call.
        outcome: What comes out of it, not timed.
        floor: What it must reach.
    """

    name: str
    part: str
    run: Callable[[], object]
    outcome: Callable[[], Outcome]
    floor: Floor = NONE


def measure(case: Case, vector: Vector, stopwatch: Stopwatch) -> Row:
    """Time it beside a copy of the vector, and see what came out."""
    x = vector.values
    ours, copies = stopwatch.time(case.run, copy_of(x))
    median = quantile(ours, 0.5)
    found = case.outcome()
    return {
        "method": case.name,
        "part": case.part,
        "vector": vector.name,
        "size": x.size,
        "median": median,
        "q1": quantile(ours, 0.25),
        "q3": quantile(ours, 0.75),
        "ns": 1e3 * median / x.size,
        "copies": median / quantile(copies, 0.5),
        "nbytes": found.nbytes,
        "bits": None if found.nbytes is None else 8 * found.nbytes / x.size,
        **quality(x, found.decoded),
        "wrong": found.wrong,
    }


def quality(x: Floats, decoded: Floats | None) -> Row:
    """The relative error, and how much of the vector is missing in its own direction.

    An unbiased code has a bias of 0 but for chance; selecting entries has minus the share of
    the squared norm that was left out.
    """
    if decoded is None:
        return {"error": None, "bias": None}
    squares = _dot(x, x)
    off = decoded - x
    error = np.sqrt(_dot(off, off) / squares) if squares else 0.0
    bias = _dot(off, x) / squares if squares else 0.0
    return {"error": float(error), "bias": float(bias)}


def _dot(a: Floats, b: Floats) -> float:
    """In double, a piece at a time: no large copies."""
    step = 1 << 20
    return float(
        sum(
            np.dot(a[i : i + step].astype(np.float64), b[i : i + step].astype(np.float64))
            for i in range(0, a.size, step)
        )
    )


def judge_floors(
    rows: list[Row], cases: dict[tuple[str, str], Floor], size: int = FLOOR_SIZE
) -> None:
    """Say which floors were met, those against other lines of the table too.

    Vectors of fewer than `FLOOR_SIZE` values are not judged: they stay in the caches, where
    a copy is much faster.
    """
    times = {f"{row['method']} {row['part']}": row["ns"] for row in rows}
    for row in rows:
        floor = cases[row["method"], row["part"]]
        row["floor"], row["faster"], row["met"] = str(floor) or None, None, None
        checks = [] if floor.copies is None else [row["copies"] <= floor.copies]
        if floor.peer in times:
            row["faster"] = times[floor.peer] / row["ns"]
            checks.append(row["faster"] >= floor.faster)
        if checks and size >= FLOOR_SIZE:
            row["met"] = "yes" if all(checks) else "no"
