"""Ours in one process: steps of one row, with one rate or a rate a coordinate (AdaGrad)."""

from __future__ import annotations

from dataclasses import replace

import sparcml
from sparcml.linear import SGD, Constant, Exponential

from .base import Curve, Data, Found, Judge, timed

NAME = "sparcml SGD, 1 process"
THREADS = "1"
HELD = "CSR in memory"
PASSES = 6

SMALL = 1e-10  # added to sums of squares: nothing
GRID = {
    "spam": [
        SGD(adaptive=SMALL, steps=Constant(0.3)),
        SGD(adaptive=SMALL, steps=Constant(0.5)),
        SGD(adaptive=SMALL, steps=Constant(1.0)),
        SGD(adaptive=1e-3, steps=Constant(1.0)),
        SGD(steps=Constant(4.0)),
        SGD(steps=Constant(8.0)),
        SGD(steps=Exponential(8.0, 0.5)),
    ],
    "URL-like": [
        SGD(adaptive=100.0, steps=Exponential(0.8, 0.4)),
        SGD(adaptive=30.0, steps=Exponential(0.4, 0.4)),
        SGD(steps=Constant(0.02)),
        SGD(steps=Exponential(0.03, 0.7)),
        SGD(steps=Exponential(0.06, 0.6)),
        SGD(steps=Exponential(0.06, 0.4)),
        SGD(steps=Exponential(0.1, 0.4)),
    ],
}


def brief(solver: SGD) -> str:
    """What differs between the settings."""
    adaptive = "" if solver.adaptive is None else f", adaptive={solver.adaptive:g}"
    batch = "" if solver.batch == 1 else f", batch={solver.batch}"
    return f"{solver.steps}{adaptive}{batch}"


def run(data: Data) -> Found:
    """Pass by pass, each a call that goes on from the state of the one before."""
    reading, rows = timed(lambda: data.rows(data.train))
    found, judge = Found(sparcml.__version__, reading), Judge(data)
    with sparcml.world() as comm:
        for solver in data.some(GRID[data.name]):
            curve = Curve(brief(solver))
            seconds, state = timed(lambda s=solver: s.init(rows))  # type: ignore[misc]
            for number in range(1, (2 if data.quick else PASSES) + 1):
                once = replace(solver, epochs=number)
                spent, _ = timed(lambda o=once, s=state: o.run(comm, rows, s))  # type: ignore[misc]
                seconds += spent
                curve.add(number, seconds, judge.of(state.weights, state.intercept))
            found.curves.append(curve)
    return found
