"""The weights of a fitted model, and its margins."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from .inputs import check_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..solvers.sgd_state import SGDState

    Doubles = NDArray[np.float64]

FLOATS = (np.float64, np.float32)


class FittedModel(BaseEstimator):
    """Weights and margins. After `partial_fit`, the weights are those of the SGD states.

    Every step of SGD changes all weights by the penalty. The states apply it when a weight is
    needed, so `partial_fit` and the margins of sparse rows cost their entries only. `coef_` has
    all weights; it is computed when it is first read.
    """

    intercept_: Any
    _states: list[SGDState]

    @cached_property
    def coef_(self) -> Any:
        """The weights, one row per target; a single row if the targets had one dimension."""
        if not getattr(self, "_states", None):
            raise AttributeError(f"{type(self).__name__}: coef_ needs a call of fit first")
        shape = (len(self._states), self._states[0].features)
        weights = np.zeros(shape, self._states[0].model.weights.dtype)
        for row, state in zip(weights, self._states, strict=True):
            state.write_weights(row)
        return weights if np.ndim(self.intercept_) else weights[0]

    def _matrix(self) -> Any:
        """Return `coef_` with one row per target, sparse or dense."""
        return self.coef_ if sparse.issparse(self.coef_) else np.atleast_2d(self.coef_)

    def _margins(self, X: Any) -> Doubles:
        """Return w.x + b, one column per target."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)
        if sparse.issparse(X):
            check_columns(X)
        if sparse.issparse(X) and "coef_" not in vars(self):
            columns, positions = np.unique(X.indices, return_inverse=True)
            shape = (X.shape[0], columns.size)
            X = sparse.csr_matrix((X.data, positions, X.indptr), shape)
            matrix = np.array([state.weights_of(columns) for state in self._states])
        else:
            matrix = self._matrix()
        margins: Doubles = safe_sparse_dot(X, matrix.T, dense_output=True)
        margins += self.intercept_
        return margins

    def sparsify(self) -> Self:
        """Convert `coef_` to a sparse matrix, which is smaller if most weights are zero."""
        check_is_fitted(self)
        self.coef_ = sparse.csr_matrix(self.coef_)
        return self

    def densify(self) -> Self:
        """Convert `coef_` back to an array."""
        check_is_fitted(self)
        if sparse.issparse(self.coef_):
            shape = (*np.shape(self.intercept_), self.n_features_in_)
            self.coef_ = self.coef_.toarray().reshape(shape)
        return self
