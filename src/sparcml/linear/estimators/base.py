"""The base class of all estimators: settings, `fit`, margins, and scikit-learn's interface."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, validate_data

from ...communicator.collective_errors import (
    allgather_numbers,
    require_same,
    run_collectively,
)
from ..solvers.learning_rate import RowNorms
from .advance import advance
from .fitted import FLOATS, FittedModel
from .inputs import (
    check_columns,
    check_settings,
    common_dtype,
    settings_of_sgd,
    single_rank,
)
from .solve import solve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ... import decentralized
    from ...aggregate import Method
    from ...communicator.communicator import Communicator
    from ..solvers.learning_rate import LearningRate
    from ..solvers.objective import Penalty

    Doubles = NDArray[np.float64]

MAX_SPREAD = 100.0  # ratio of columns above which SGD stops far from the optimum


class LinearModel(FittedModel):
    """Settings and methods of all estimators.

    `fit` and `partial_fit` are collective: every rank passes its own rows and gets the same
    model. `predict`, `score` and others concern the caller's rows only.

    Args:
        fit_intercept: Whether to fit an intercept; it is not penalised.
        solver: "scd" (coordinate descent to the optimum), "sgd" (mini-batch gradient descent),
            or "auto": scd unless the loss, `method` or `early_stopping` requires sgd.
        max_iter: Largest number of epochs.
        tol: Relative tolerance. scd stops when an epoch reduces the objective by less, sgd when
            `n_iter_no_change` epochs in a row reduce the best loss by less. None is 1e-6 for
            scd, 1e-3 for sgd and 1e-2 for sgd with AdaGrad.
        random_state: Seed of the shuffles; that of rank 0 is used.
        early_stopping: Whether sgd stops by the loss on a validation set; the model is then
            the best on it, not the last.
        validation_fraction: Fraction of the rows in the validation set.
        n_iter_no_change: Epochs without progress after which sgd stops.
        batch_size: Rows per step of sgd, over all ranks. Default: 100, or fewer in a `fit` on
            dense rows with the default learning rate, so that an epoch has 1,000 steps.
        learning_rate: A schedule of `sparcml.linear` for sgd. By default, each weight of a
            classifier of sparse rows has its own (AdaGrad); otherwise it is from the row norms.
        method: An aggregation method that compresses gradients (sgd); lossless by default. A
            method of `sparcml.decentralized` trains with neighbours; see `sparcml.linear.SGD`.
        comm: The ranks; by default, this process only.
    """

    n_iter_: int
    _seen: RowNorms = RowNorms()

    def __init__(
        self,
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
        """Return the name of the loss."""

    @abstractmethod
    def _penalty(self, weight: float) -> Penalty:
        """Return the penalty added to the mean loss, for rows of this total weight."""

    # ---- one call of fit or partial_fit ----

    @contextmanager
    def _communicator(self) -> Iterator[Communicator]:
        """Return the communicator of a fit; a world of one is closed afterwards."""
        if self.comm is not None:
            yield self.comm
        else:
            with single_rank() as comm:
                yield comm

    def _check_inputs(
        self, comm: Communicator, X: Any, y: Any, sample_weight: Any, **options: Any
    ) -> tuple[Any, Any, Doubles | None]:
        """Return this rank's rows of nonzero weight; raise on all ranks or on none.

        One of several ranks may have no rows.
        """

        def check() -> tuple[Any, Any, Doubles | None]:
            check_settings(self)
            rows, labels = validate_data(
                self,
                X,
                y,
                accept_sparse="csr",
                dtype=FLOATS,
                ensure_min_samples=1 if comm.size == 1 else 0,
                **options,
            )
            if sparse.issparse(rows):
                check_columns(rows)
            if sample_weight is None or not rows.shape[0]:
                return rows, labels, None
            weights = _check_sample_weight(
                sample_weight, rows, dtype=np.float64, ensure_non_negative=True
            )
            if (weights > 0).all():
                return rows, labels, weights
            return rows[weights > 0], labels[weights > 0], weights[weights > 0]

        settings = {"estimator": type(self).__name__, **self.get_params(deep=False)}
        for own in ("comm", "random_state"):  # ranks agree on a seed
            settings.pop(own, None)
        require_same(type(self).__name__, comm, settings)
        X, y, weights = run_collectively(comm, check)
        return common_dtype(comm, X), y, weights

    def _fit(
        self, comm: Communicator, X: Any, targets: Doubles, weights: Doubles | None
    ) -> None:
        """Fit each target from the beginning."""
        solutions = solve(self, comm, X, targets, weights)
        self._states = []
        mass = float(X.shape[0] if weights is None else weights.sum())
        self._seen = RowNorms(mass=float(allgather_numbers(comm, mass).sum()))
        self.coef_ = np.array([s.weights for s in solutions])
        self.intercept_ = np.array([s.intercept for s in solutions])
        self.n_iter_ = max(s.epochs for s in solutions)
        spread = solutions[0].spread
        reason, remedy = "", "raise max_iter or tol, or scale the features"
        if spread > MAX_SPREAD:
            reason = f": the columns' magnitudes differ by a factor of {spread:.2g}"
            scd = not settings_of_sgd(self, self._loss())
            remedy = "scale the features" + ", or set solver='scd'" * scd
        elif all(s.converged for s in solutions):
            return
        if comm.rank == 0:
            warnings.warn(
                f"{type(self).__name__}: not converged after {self.n_iter_} epochs{reason}; "
                f"{remedy}",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _partial_fit(
        self, comm: Communicator, X: Any, targets: Doubles, weights: Doubles | None
    ) -> None:
        """Train each target for one epoch of SGD over these rows, from its state."""
        states = getattr(self, "_states", [])
        self._states = advance(self, comm, X, targets, weights, states)
        self.__dict__.pop("coef_", None)  # computed when it is read
        self.intercept_ = np.array([state.intercept for state in self._states])
        self.n_iter_ = self._states[0].epoch

    # ---- the interface of scikit-learn ----

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_clone__(self) -> Self:
        """Clone; copies share the communicator, which cannot be copied."""
        comm, self.comm = self.comm, None
        try:
            copy: Self = super().__sklearn_clone__()
        finally:
            self.comm = comm
        copy.comm = comm
        return copy

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the model without its communicator."""
        return {**super().__getstate__(), "comm": None}
