"""The settings that all estimators share, and what they must be."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from ...aggregate import Method
from ..solvers.learning_rate import LearningRate
from ..solvers.objective import loss_of

SOLVERS = ("auto", "scd", "sgd")
WHOLE = {"max_iter": 1, "n_iter_no_change": 1, "batch_size": 1}  # and the least they may be
INSTANCES = {"learning_rate": LearningRate, "method": Method}


def check_settings(estimator: Any) -> None:
    """ValueError or TypeError for what cannot be; scikit-learn wants that in `fit` only."""
    name = type(estimator).__name__
    if estimator.solver not in SOLVERS:
        raise ValueError(
            f"{name}: solver must be one of {', '.join(SOLVERS)}, got {estimator.solver!r}"
        )
    for setting, least in WHOLE.items():
        value = getattr(estimator, setting)
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise TypeError(f"{name}: {setting} must be a whole number, got {value!r}")
        if value < least:
            raise ValueError(f"{name}: {setting} must be >= {least}, got {value!r}")
    check_number(estimator, "tol")
    check_number(estimator, "validation_fraction", above=True)
    if estimator.validation_fraction >= 1:
        raise ValueError(
            f"{name}: validation_fraction must be < 1, got {estimator.validation_fraction!r}"
        )
    for setting, kind in INSTANCES.items():
        value = getattr(estimator, setting)
        if value is not None and not isinstance(value, kind):
            raise TypeError(f"{name}: {setting} must be a {kind.__name__}, got {value!r}")


def check_number(estimator: Any, setting: str, *, above: bool = False) -> None:
    """Raise unless a setting is a number >= 0, or > 0."""
    name, value = type(estimator).__name__, getattr(estimator, setting)
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}: {setting} must be a number, got {value!r}")
    if not (float(value) > 0 or (value == 0 and not above)):
        bound = "> 0" if above else ">= 0"
        raise ValueError(f"{name}: {setting} must be {bound}, got {value!r}")


def solver_of(estimator: Any, loss: str) -> str:
    """The solver that was asked for, or scd wherever it can do what was asked for."""
    needs_steps = {
        f"the loss {loss}": loss_of(loss).curvature is None,
        "method": estimator.method is not None,
        "early_stopping": bool(estimator.early_stopping),
    }
    against = [what for what, holds in needs_steps.items() if holds]
    if estimator.solver == "scd" and against:
        raise ValueError(
            f"{type(estimator).__name__}: solver 'scd' does not go together with "
            f"{' and '.join(against)}; take 'sgd'"
        )
    if estimator.solver == "auto":
        return "sgd" if against else "scd"
    return str(estimator.solver)
