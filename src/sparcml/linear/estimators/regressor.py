"""Regressors: one target or several, each by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from .base import LinearModel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Doubles = NDArray[np.float64]

HOW = {"y_numeric": True, "multi_output": True}


class LinearRegressor(RegressorMixin, LinearModel):
    """Squared loss, and a penalty of strength alpha.

    Args:
        alpha: How strong the penalty is.
        settings: See `LinearModel`.
    """

    def __init__(self, alpha: float = 1.0, **settings: Any) -> None:
        super().__init__(**settings)
        self.alpha = alpha

    def _loss(self) -> str:
        return "squared"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the model of these rows; a collective call.

        Args:
            X: This rank's rows, an array or a sparse matrix.
            y: Their targets: a number a row, or a row of numbers.
            sample_weight: What each counts; ones by default.
        """
        with self._ranks() as comm:
            X, y, weights = self._checked(comm, X, y, sample_weight, **HOW)
            self._fit(comm, X, _by_target(y), weights)
            self._drop(y)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Go on with one pass of sgd over these rows, as if there were no others."""
        first = not hasattr(self, "coef_")
        with self._ranks() as comm:
            X, y, weights = self._checked(comm, X, y, sample_weight, reset=first, **HOW)
            self._go_on(comm, X, _by_target(y), weights)
            self._drop(y)
        return self

    def _drop(self, y: Doubles) -> None:
        """Of targets in one dimension there is one: `coef_` has one dimension too."""
        if y.ndim == 1:
            self.coef_, self.intercept_ = self.coef_[0], float(self.intercept_[0])

    def predict(self, X: Any) -> Doubles:
        """The target of each row, or its targets."""
        found = self._margins(X)
        return found if np.ndim(self.intercept_) else found[:, 0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        return tags


def _by_target(y: Doubles) -> Doubles:
    """One row a target."""
    return np.ascontiguousarray(np.atleast_2d(y.T), np.float64)
