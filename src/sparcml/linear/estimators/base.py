"""What all estimators share: from X, labels and settings to weights, on all ranks."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ...communicator.collective_errors import together
from ...errors import DataError
from .agree import alone, common_shape
from .settings import check_settings
from .train import advance, solve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ...aggregate import Method
    from ...communicator.communicator import Communicator
    from ..solvers.learning_rate import LearningRate
    from ..solvers.penalty import Penalty
    from ..solvers.sgd_state import SGDState

    Doubles = NDArray[np.float64]

FLOATS = (np.float64, np.float32)


class LinearModel(BaseEstimator):
    """Settings and methods of all estimators.

    Every rank gives its own rows to `fit` and `partial_fit`, which are collective calls,
    and gets the same model. `predict`, `score` and others concern the caller's rows only.

    Args:
        fit_intercept: Whether there is an intercept; it is not penalised.
        solver: "scd" goes to the optimum by coordinates, "sgd" gets near it by steps along
            gradients of batches; "auto" is scd where loss, method and early stopping permit.
        max_iter: Passes over the coordinates or rows, at most.
        tol: Stop when a pass makes the objective smaller by less than this part; for sgd,
            when `n_iter_no_change` passes do so to the loss.
        random_state: Of the order of coordinates or rows; rank 0's counts.
        early_stopping: Whether to end by the loss on rows that are held out (sgd); the model
            is the best on them, not the last.
        validation_fraction: How many of the rows are held out, then.
        n_iter_no_change: Passes without progress after which sgd ends.
        batch_size: Rows of a step of sgd, over all ranks.
        learning_rate: Rates of sgd, of `sparcml.linear`; by default they follow from the rows.
        method: How gradients are compressed on their way (sgd); nothing is lost by default.
        comm: The ranks; by default this process alone.
    """

    coef_: Any
    intercept_: Any
    n_iter_: int
    _states: list[SGDState]

    def __init__(
        self,
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
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.method = method
        self.comm = comm

    @abstractmethod
    def _loss(self) -> str:
        """The loss, one of LOSSES."""

    @abstractmethod
    def _penalty(self, weight: float) -> Penalty:
        """The penalty beside the mean loss of rows that weigh so much together."""

    # ---- one call of fit or partial_fit ----

    @contextmanager
    def _ranks(self) -> Iterator[Communicator]:
        """The ranks of a fit; a world of one is closed again."""
        if self.comm is not None:
            yield self.comm
        else:
            with alone() as comm:
                yield comm

    def _checked(
        self, comm: Communicator, X: Any, y: Any, sample_weight: Any, **how: Any
    ) -> tuple[Any, Any, Doubles | None]:
        """This rank's rows that count, as arrays; raises on all ranks or on none.

        A rank among others may have no rows.
        """

        def check() -> tuple[Any, Any, Doubles | None]:
            check_settings(self)
            least = 1 if comm.size == 1 else 0
            found, labels = validate_data(
                self,
                X,
                y,
                accept_sparse="csr",
                dtype=FLOATS,
                ensure_min_samples=least,
                **how,
            )
            if sparse.issparse(found):
                check_columns(found)
            if sample_weight is None or not found.shape[0]:
                return found, labels, None
            weights = _check_sample_weight(
                sample_weight, found, dtype=np.float64, ensure_non_negative=True
            )
            if (weights > 0).all():
                return found, labels, weights
            return found[weights > 0], labels[weights > 0], weights[weights > 0]

        X, y, weights = together(comm, check)
        return common_shape(comm, X), y, weights

    def _fit(
        self, comm: Communicator, X: Any, targets: Doubles, weights: Doubles | None
    ) -> None:
        """Set the weights of each target, from the beginning."""
        found = solve(self, comm, X, targets, weights)
        self._states = []
        self._set([each.weights for each in found], [each.intercept for each in found])
        self.n_iter_ = max(each.passes for each in found)
        if comm.rank == 0 and not all(each.settled for each in found):
            warnings.warn(
                f"{type(self).__name__}: no end after {self.n_iter_} passes; raise max_iter "
                f"or tol, or scale the features",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _go_on(
        self, comm: Communicator, X: Any, targets: Doubles, weights: Doubles | None
    ) -> None:
        """One pass of sgd for each target, from where they are."""
        states = getattr(self, "_states", [])
        self._states = advance(self, comm, X, targets, weights, states)
        self._set(
            [state.weights for state in self._states],
            [state.intercept for state in self._states],
        )
        self.n_iter_ = self._states[0].epoch

    # ---- the model ----

    def _set(self, weights: list[NDArray[Any]], intercepts: list[float]) -> None:
        """Set `coef_` and `intercept_`, one row a target; regressors drop the only one's."""
        self.coef_ = np.array(weights)
        self.intercept_ = np.array(intercepts)

    def _matrix(self) -> Any:
        """`coef_`, one row a target, sparse or not."""
        return self.coef_ if sparse.issparse(self.coef_) else np.atleast_2d(self.coef_)

    def _margins(self, X: Any) -> Doubles:
        """w.x + b, one column a target."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)
        if sparse.issparse(X):
            check_columns(X)
        found: Doubles = safe_sparse_dot(X, self._matrix().T, dense_output=True)
        found += self.intercept_
        return found

    def sparsify(self) -> Self:
        """Keep `coef_` as a sparse matrix, which is smaller if most weights are zero."""
        check_is_fitted(self)
        self.coef_ = sparse.csr_matrix(self.coef_)
        return self

    def densify(self) -> Self:
        """Keep `coef_` as an array again, as `fit` leaves it."""
        check_is_fitted(self)
        if sparse.issparse(self.coef_):
            shape = (*np.shape(self.intercept_), self.n_features_in_)
            self.coef_ = self.coef_.toarray().reshape(shape)
        return self

    # ---- what scikit-learn asks for ----

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_clone__(self) -> Self:
        """Copies use the same ranks, which cannot be copied."""
        comm, self.comm = self.comm, None
        try:
            copy: Self = super().__sklearn_clone__()
        finally:
            self.comm = comm
        copy.comm = comm
        return copy

    def __getstate__(self) -> dict[str, Any]:
        """A model is kept without its ranks."""
        return {**super().__getstate__(), "comm": None}


def check_columns(X: Any) -> None:
    """DataError if a column of a CSR matrix is not among those it declares."""
    if X.nnz and not 0 <= X.indices.min() <= X.indices.max() < X.shape[1]:
        raise DataError(
            f"columns must be 0 to {X.shape[1] - 1}, as declared, but X has "
            f"{X.indices.min()} to {X.indices.max()}"
        )
