"""LIBLINEAR with its Python package: logistic regression, primal and dual.

Its solvers do not report epochs; they stop at a tolerance, so points of a curve are tolerances.
"""

from __future__ import annotations

from importlib.metadata import version

import numpy as np

from .base import Curve, Data, Found, Judge, scipy_rows, timed

NAME = "LIBLINEAR"
THREADS = "1"
HELD = "its own lists in memory"
TOLERANCES = {0: (0.1, 0.03, 0.01, 0.003), 7: (1.0, 0.3, 0.1, 0.03)}
SOLVERS = {0: "primal, trust region", 7: "dual, coordinate descent"}

GRID = {
    "spam": [(7, 100.0), (0, 100.0), (7, 30.0)],
    "URL-like": [(7, 0.3), (0, 0.3), (7, 0.1)],
}


def run(data: Data) -> Found:
    """Run all settings; reading includes the package's own conversion."""
    from liblinear.liblinearutil import parameter, problem, train

    reading, X, y = scipy_rows(data)
    converting, rows = timed(lambda: problem(y, X.astype(np.float64), 1))
    found = Found(version("liblinear-official"), reading + converting)
    judge = Judge(data)
    for solver, C in data.some(GRID[data.name]):
        curve = Curve(f"{SOLVERS[solver]}, C={C:g}")
        for number, tolerance in enumerate(data.some(list(TOLERANCES[solver])), 1):
            options = parameter(f"-s {solver} -c {C} -e {tolerance} -q")
            seconds, model = timed(lambda o=options: train(rows, o))  # type: ignore[misc]
            curve.add(number, seconds, _loss(model, data, judge))
        found.curves.append(curve)
    return found


def _loss(model: object, data: Data, judge: Judge) -> float:
    weights = np.ctypeslib.as_array(model.w, (data.features + 1,))  # type: ignore[attr-defined]
    sign = model.get_labels()[0]  # type: ignore[attr-defined]  # its weights are for the first
    return judge.of(sign * weights[:-1], float(sign * weights[-1]))
