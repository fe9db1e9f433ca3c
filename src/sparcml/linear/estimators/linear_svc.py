"""Linear support vector machines, one-vs-rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..solvers.objective import Penalty
from .classifier import LinearClassifier
from .inputs import check_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ... import decentralized
    from ...aggregate import Method
    from ...communicator.communicator import Communicator
    from ..solvers.learning_rate import LearningRate

LOSSES = ("squared_hinge", "hinge")


class LinearSVC(LinearClassifier):
    """Minimise C * the sum of max(0, 1 - y (w.x + b)), or of its squares, plus |w|^2 / 2.

    Unlike in scikit-learn's LinearSVC, the intercept is not penalised.

    Args:
        C: Inverse strength of the penalty; infinity for none.
        loss: "squared_hinge", or "hinge", which requires sgd.
        class_weight: See `LinearClassifier`.
        fit_intercept: This and all others: see `LinearModel`.
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "squared_hinge",
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
        self.loss = loss

    def _loss(self) -> str:
        if self.loss not in LOSSES:
            raise ValueError(
                f"LinearSVC: loss must be {' or '.join(LOSSES)}, got {self.loss!r}"
            )
        return self.loss

    def _penalty(self, weight: float) -> Penalty:
        check_number(self, "C", positive=True)
        return Penalty(l2=1.0 / (self.C * weight))
