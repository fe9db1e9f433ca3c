"""scikit-learn's SGDClassifier: steps on one row, with its own schedules or ours.

Its schedules continue from one `partial_fit` to the next; `decay` multiplies `eta0` after each
epoch, which a loop over `partial_fit` allows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import REPEATS, Curve, Data, Found, Judge, scipy_rows, timed

NAME = "scikit-learn SGDClassifier"
THREADS = "1"
HELD = "CSR in memory"
PASSES = 8
NONE = 1e-12  # alpha: as good as no penalty, and its default makes the loss larger

GRID: dict[str, list[dict[str, Any]]] = {
    "spam": [
        {"learning_rate": "constant", "eta0": 8, "alpha": NONE},
        {"learning_rate": "constant", "eta0": 16, "alpha": NONE},
        {"learning_rate": "constant", "eta0": 32, "alpha": NONE},
        {"learning_rate": "constant", "eta0": 64, "alpha": NONE, "decay": 0.5},
        {"learning_rate": "optimal", "alpha": 1e-7},
        {"learning_rate": "optimal", "alpha": 1e-6},
        {"learning_rate": "optimal", "alpha": 1e-5},
        {"learning_rate": "invscaling", "eta0": 64, "power_t": 0.2, "alpha": NONE},
    ],
    "URL-like": [
        {"learning_rate": "constant", "eta0": 0.02, "alpha": NONE},
        {"learning_rate": "constant", "eta0": 0.03, "alpha": NONE, "decay": 0.7},
        {"learning_rate": "constant", "eta0": 0.06, "alpha": NONE, "decay": 0.6},
        {"learning_rate": "constant", "eta0": 0.1, "alpha": NONE, "decay": 0.4},
        {"learning_rate": "constant", "eta0": 0.06, "alpha": 3e-5, "decay": 0.6},
        {"learning_rate": "invscaling", "eta0": 0.5, "power_t": 0.25, "alpha": NONE},
        {"learning_rate": "invscaling", "eta0": 0.5, "power_t": 0.25, "average": True},
        {"learning_rate": "optimal", "alpha": 1e-4},
    ],
}


def run(data: Data) -> Found:
    """Run epoch by epoch."""
    import sklearn

    reading, X, y = scipy_rows(data)
    found, judge = Found(sklearn.__version__, reading, runs=REPEATS), Judge(data)
    for setting in data.some(GRID[data.name]):
        found.curves.append(_curve(data, setting, X, y, judge))
    return found


def _curve(data: Data, setting: dict[str, Any], X: Any, y: Any, judge: Judge) -> Curve:
    curve = Curve(", ".join(f"{k}={v}" for k, v in setting.items()))
    for _ in range(REPEATS):
        _follow(setting, X, y, judge, curve, 2 if data.quick else PASSES)
    return curve


def _follow(
    setting: dict[str, Any], X: Any, y: Any, judge: Judge, curve: Curve, passes: int
) -> None:
    from sklearn.linear_model import SGDClassifier

    options, seconds = dict(setting), 0.0
    decay = options.pop("decay", 1.0)
    model = SGDClassifier(loss="log_loss", random_state=np.random.RandomState(0), **options)
    for number in range(1, passes + 1):
        spent, _ = timed(lambda: model.partial_fit(X, y, classes=[-1, 1]))
        seconds += spent
        curve.add(number, seconds, judge.of(model.coef_[0], float(model.intercept_[0])))
        model.set_params(eta0=model.eta0 * decay)
