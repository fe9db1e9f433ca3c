"""scikit-learn's LogisticRegression with SAGA, from the start for each number of epochs."""

from __future__ import annotations

import warnings

from .base import Curve, Data, Found, Judge, scipy_rows, timed

NAME = "scikit-learn LogisticRegression, saga"
THREADS = "1"
HELD = "CSR in memory"
PASSES = (1, 2, 4, 8, 16)

GRID = {"spam": [30.0, 100.0], "URL-like": [0.1, 0.3]}  # C


def run(data: Data) -> Found:
    """Run all settings; the solver's gradient table is lost between calls."""
    import sklearn
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    warnings.simplefilter("ignore", ConvergenceWarning)  # few passes are what is asked for
    reading, X, y = scipy_rows(data)
    found, judge = Found(sklearn.__version__, reading), Judge(data)
    for C in data.some(GRID[data.name]):
        curve = Curve(f"C={C:g}")
        for passes in data.some(list(PASSES)):
            model = LogisticRegression(C=C, solver="saga", max_iter=passes, random_state=0)
            seconds, _ = timed(lambda model=model: model.fit(X, y))  # type: ignore[misc]
            curve.add(passes, seconds, judge.of(model.coef_[0], model.intercept_[0]))
        found.curves.append(curve)
    return found
