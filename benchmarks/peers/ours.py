"""Ours in one process: steps on one row, with one learning rate or AdaGrad."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import sparcml
from sparcml.linear import SGD, Constant, ExponentialDecay, Rows

from .base import REPEATS, Curve, Data, Found, Judge, timed

NAME = "sparcml SGD, 1 process"
THREADS = "1"
HELD = "CSR in memory"
PASSES = 6

SMALL = 1e-10  # added to sums of squares: nothing
GRID = {
    "spam": [
        SGD(adaptive=SMALL, learning_rate=Constant(0.3)),
        SGD(adaptive=SMALL, learning_rate=Constant(0.5)),
        SGD(adaptive=SMALL, learning_rate=Constant(1.0)),
        SGD(adaptive=1e-3, learning_rate=Constant(1.0)),
        SGD(learning_rate=Constant(8.0), intercept_rate=0.01),
        SGD(learning_rate=Constant(16.0), intercept_rate=0.01),
        SGD(learning_rate=ExponentialDecay(32.0, 0.4), intercept_rate=0.01),
    ],
    "URL-like": [
        SGD(adaptive=100.0, learning_rate=ExponentialDecay(0.8, 0.4)),
        SGD(adaptive=30.0, learning_rate=ExponentialDecay(0.4, 0.4)),
        SGD(learning_rate=Constant(0.02)),
        SGD(learning_rate=ExponentialDecay(0.03, 0.7)),
        SGD(learning_rate=ExponentialDecay(0.06, 0.6)),
        SGD(learning_rate=ExponentialDecay(0.06, 0.4)),
        SGD(learning_rate=ExponentialDecay(0.1, 0.4)),
    ],
}


def brief(solver: SGD) -> str:
    """Return the parameters that differ between settings."""
    adaptive = "" if solver.adaptive is None else f", adaptive={solver.adaptive:g}"
    slow = (
        "" if solver.intercept_rate == 1 else f", intercept_rate={solver.intercept_rate:g}"
    )
    batch = "" if solver.batch_size == 1 else f", batch_size={solver.batch_size}"
    local = "" if solver.local_steps == 1 else f", local_steps={solver.local_steps}"
    return f"{solver.learning_rate}{adaptive}{slow}{batch}{local}"


def run(data: Data) -> Found:
    """Run epoch by epoch; each call resumes from the state of the previous one."""
    reading, rows = timed(lambda: data.rows(data.train))
    found, judge = Found(sparcml.__version__, reading, runs=REPEATS), Judge(data)
    with sparcml.world() as comm:
        for solver in data.some(GRID[data.name]):
            curve = Curve(brief(solver))
            for _ in range(REPEATS):
                follow(solver, comm, rows, judge, curve, 2 if data.quick else PASSES)
            found.curves.append(curve)
    return found


def follow(
    solver: SGD,
    comm: sparcml.Communicator,
    rows: Rows,
    judge: Judge,
    curve: Curve,
    passes: int,
) -> None:
    """Run from the start, and record when the last rank has finished each epoch."""
    seconds, state = timed(lambda: solver.init(rows))
    for number in range(1, passes + 1):
        once = replace(solver, epochs=number)
        comm.barrier()
        spent, _ = timed(lambda once=once: once.run(comm, rows, state))  # type: ignore[misc]
        seconds += float(np.max(comm.allgather(np.array([spent]))))
        curve.add(number, seconds, judge.of(state.weights, state.intercept))
