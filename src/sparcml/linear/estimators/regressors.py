"""Least squares with an L1 penalty (Lasso) or an L2 penalty (Ridge)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from ..solvers.objective import Penalty
from .base import LinearModel
from .inputs import check_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ... import decentralized
    from ...aggregate import Method
    from ...communicator.communicator import Communicator
    from ..solvers.learning_rate import LearningRate

    Doubles = NDArray[np.float64]

VALIDATION = {"y_numeric": True, "multi_output": True}


class LinearRegressor(RegressorMixin, LinearModel):
    """Squared loss with a penalty of strength alpha; several targets are fitted separately.

    Args:
        alpha: Strength of the penalty.
        fit_intercept: This and all others: see `LinearModel`.
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
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
        self.alpha = alpha

    def _loss(self) -> str:
        return "squared"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model. Collective.

        Args:
            X: This rank's rows, an array or a sparse matrix.
            y: Their targets: one number per row, or one row of numbers.
            sample_weight: Row weights; ones by default.
        """
        with self._communicator() as comm:
            X, y, weights = self._check_inputs(comm, X, y, sample_weight, **VALIDATION)
            self._fit(comm, X, _target_rows(y), weights)
            self._drop_dimension(y)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Continue with one epoch of SGD over these rows. Collective.

        The penalty is that of `fit` on the rows of all calls together, so the result hardly
        depends on how the rows are divided into calls. Each call counts as one epoch of
        `learning_rate`, if that is set.
        """
        first = not hasattr(self, "intercept_")
        with self._communicator() as comm:
            X, y, weights = self._check_inputs(
                comm, X, y, sample_weight, reset=first, **VALIDATION
            )
            self._partial_fit(comm, X, _target_rows(y), weights)
            self._drop_dimension(y)
        return self

    def _drop_dimension(self, y: Doubles) -> None:
        """Give `coef_` one dimension if y has one."""
        if y.ndim == 1:
            self.intercept_ = float(self.intercept_[0])
            if "coef_" in vars(self):
                self.coef_ = self.coef_[0]

    def predict(self, X: Any) -> Doubles:
        """Return the target, or the targets, of each row."""
        margins = self._margins(X)
        return margins if np.ndim(self.intercept_) else margins[:, 0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        return tags


def _target_rows(y: Doubles) -> Doubles:
    """Return one row per target."""
    return np.ascontiguousarray(np.atleast_2d(y.T), np.float64)


class Lasso(LinearRegressor):
    """Minimise the mean of (y - w.x - b)^2 / 2 plus alpha * |w|_1, as scikit-learn's Lasso.

    Args:
        alpha: Strength of the penalty.
        fit_intercept: This and all others: see `LinearModel`.
    """

    def _penalty(self, weight: float) -> Penalty:
        del weight  # the loss is a mean already
        check_number(self, "alpha")
        return Penalty(l1=self.alpha)


class Ridge(LinearRegressor):
    """Minimise the sum of (y - w.x - b)^2 plus alpha * |w|^2, as scikit-learn's Ridge.

    Args:
        alpha: Strength of the penalty.
        fit_intercept: This and all others: see `LinearModel`.
    """

    def _penalty(self, weight: float) -> Penalty:
        check_number(self, "alpha")
        return Penalty(l2=self.alpha / weight)
