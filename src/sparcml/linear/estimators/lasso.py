"""Least squares with an l1 penalty: many weights end at zero."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..solvers.penalty import Penalty
from .regressor import LinearRegressor
from .settings import check_number

if TYPE_CHECKING:
    from ...aggregate import Method
    from ...communicator.communicator import Communicator
    from ..solvers.learning_rate import LearningRate


class Lasso(LinearRegressor):
    """Makes the mean of (y - w.x - b)^2 / 2 plus alpha * |w|_1 small, as scikit-learn's does.

    Args:
        alpha: How strong the penalty is.
        fit_intercept: The others: see `LinearModel`.
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
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
            alpha=alpha,
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

    def _penalty(self, weight: float) -> Penalty:
        del weight  # the loss beside it is a mean already
        check_number(self, "alpha")
        return Penalty(l1=self.alpha)
