"""Logistic regression, one-vs-rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import log_expit, log_softmax

from ..solvers.objective import Penalty
from .classifier import LinearClassifier
from .inputs import check_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ... import decentralized
    from ...aggregate import Method
    from ...communicator.communicator import Communicator
    from ..solvers.learning_rate import LearningRate

    Doubles = NDArray[np.float64]


class LogisticRegression(LinearClassifier):
    """Minimise C * the sum of log(1 + exp(-y (w.x + b))) plus a penalty.

    The penalty is l1_ratio * |w|_1 + (1 - l1_ratio) / 2 * |w|^2. For two classes this is
    scikit-learn's objective; more classes are fitted one-vs-rest.

    Args:
        C: Inverse strength of the penalty; infinity for none.
        l1_ratio: Fraction of the penalty that is l1; the rest is l2.
        class_weight: See `LinearClassifier`.
        fit_intercept: This and all others: see `LinearModel`.
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        l1_ratio: float = 0.0,
        class_weight: Mapping[Any, float] | str | None = None,
        fit_intercept: bool = True,
        solver: str = "auto",
        max_iter: int = 1000,
        tol: float | None = None,
        random_state: Any = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        batch_size: int | None = None,
        learning_rate: LearningRate | None = None,
        method: Method | decentralized.Method | None = None,
        comm: Communicator | None = None,
    ) -> None:
        super().__init__(
            class_weight=class_weight,
            fit_intercept=fit_intercept,
            solver=solver,
            max_iter=max_iter,
            tol=tol,
            random_state=random_state,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            batch_size=batch_size,
            learning_rate=learning_rate,
            method=method,
            comm=comm,
        )
        self.C = C
        self.l1_ratio = l1_ratio

    def _loss(self) -> str:
        return "logistic"

    def _penalty(self, weight: float) -> Penalty:
        check_number(self, "C", positive=True)
        check_number(self, "l1_ratio")
        return Penalty.mixed(1.0 / (self.C * weight), self.l1_ratio)

    def predict_log_proba(self, X: Any) -> Doubles:
        """Return the logarithm of `predict_proba`, also where that underflows."""
        margins = self._margins(X)
        logs: Doubles
        if margins.shape[1] == 1:
            logs = log_expit(np.hstack([-margins, margins]))
        else:
            logs = log_softmax(log_expit(margins), axis=1)
        return logs

    def predict_proba(self, X: Any) -> Doubles:
        """Return the probability of each class; for more than two, normalised one-vs-rest."""
        probabilities: Doubles = np.exp(self.predict_log_proba(X))
        return probabilities
