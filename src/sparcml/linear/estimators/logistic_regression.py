"""Logistic regression, each class against all others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import log_expit, log_softmax

from ..solvers.penalty import Penalty
from .classifier import LinearClassifier
from .settings import check_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ...aggregate import Method
    from ...communicator.communicator import Communicator
    from ..solvers.learning_rate import LearningRate

    Doubles = NDArray[np.float64]


class LogisticRegression(LinearClassifier):
    """Makes C * the sum of log(1 + exp(-y (w.x + b))) plus a penalty small.

    The penalty is l1_ratio * |w|_1 + (1 - l1_ratio) / 2 * |w|^2. For two classes that is what
    scikit-learn's does; of more, each is told from all others.

    Args:
        C: The inverse of the penalty's strength; infinity for none.
        l1_ratio: How much of the penalty is l1; the rest is l2.
        class_weight: See `LinearClassifier`.
        fit_intercept: The others: see `LinearModel`.
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
        tol: float = 1e-6,
        random_state: Any = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        batch_size: int = 100,
        learning_rate: LearningRate | None = None,
        method: Method | None = None,
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
        check_number(self, "C", above=True)
        check_number(self, "l1_ratio")
        return Penalty.mixed(1.0 / (self.C * weight), self.l1_ratio)

    def predict_log_proba(self, X: Any) -> Doubles:
        """The logarithm of `predict_proba`, also where that is too small for a number."""
        margins = self._margins(X)
        found: Doubles
        if margins.shape[1] == 1:
            found = log_expit(np.hstack([-margins, margins]))
        else:
            found = log_softmax(log_expit(margins), axis=1)
        return found

    def predict_proba(self, X: Any) -> Doubles:
        """How likely each class is; of more than two, each one's chance among all."""
        found: Doubles = np.exp(self.predict_log_proba(X))
        return found
