"""The base class of classifiers, which are one-vs-rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from ...communicator.collective_errors import run_collectively
from ...errors import DataError
from ..data.labels import (
    balanced_weights,
    named_weights,
    one_vs_rest,
    target_count,
    unique_labels,
)
from .base import LinearModel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator

    Doubles = NDArray[np.float64]


class LinearClassifier(ClassifierMixin, LinearModel):
    """One row of `coef_` per class, or a single one for the second of two classes.

    Args:
        class_weight: Weights of classes, {class: weight}, which are multiplied with sample
            weights; "balanced" gives all classes the same total weight.
        settings: See `LinearModel`.
    """

    classes_: NDArray[Any]

    def __init__(
        self, *, class_weight: Mapping[Any, float] | str | None = None, **settings: Any
    ) -> None:
        super().__init__(**settings)
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model. Collective.

        Args:
            X: This rank's rows, an array or a sparse matrix.
            y: Their labels, numbers or text.
            sample_weight: Row weights; ones by default.
        """
        with self._communicator() as comm:
            X, y, weights = self._check_inputs(comm, X, y, sample_weight)
            run_collectively(comm, lambda: y.size and check_classification_targets(y))
            self.classes_ = unique_labels(comm, y)
            if self.classes_.size < 2:
                raise DataError(
                    f"{type(self).__name__}: labels must have two classes or more, got one "
                    f"class: {', '.join(map(repr, self.classes_.tolist()))}"
                )
            codes = np.searchsorted(self.classes_, y)
            weights = self._weigh_classes(comm, codes, weights)
            self._fit(comm, X, self._targets(codes), weights)
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Continue with one epoch of SGD over these rows. Collective.

        The penalty is that of `fit` on the rows of all calls together, so the result hardly
        depends on how the rows are divided into calls. Each call counts as one epoch of
        `learning_rate`, if that is set.

        Args:
            X: This rank's rows.
            y: Their labels.
            classes: All classes; required in the first call.
            sample_weight: Row weights.
        """
        first = not hasattr(self, "intercept_")
        with self._communicator() as comm:
            X, y, weights = self._check_inputs(comm, X, y, sample_weight, reset=first)
            codes = run_collectively(comm, lambda: self._encode(y, classes, first))
            weights = self._weigh_classes(comm, codes, weights)
            self._partial_fit(comm, X, self._targets(codes), weights)
        return self

    def _encode(self, y: NDArray[Any], classes: Any, first: bool) -> NDArray[np.int64]:
        """Return labels as numbers of classes, which the first call sets."""
        name = type(self).__name__
        if y.size:
            check_classification_targets(y)
        given = None if classes is None else np.unique(classes)
        if first:
            if given is None or given.size < 2:
                raise ValueError(
                    f"{name}: classes must have two or more items in the first partial_fit, "
                    f"got {classes!r}"
                )
            self.classes_ = given
        elif given is not None and not np.array_equal(given, self.classes_):
            raise ValueError(
                f"{name}: classes must stay {self.classes_.tolist()}, got {given.tolist()}"
            )
        if (unknown := np.setdiff1d(y, self.classes_)).size:
            raise DataError(
                f"{name}: labels must be among the classes {self.classes_.tolist()}, got "
                f"{unknown.tolist()}"
            )
        return np.searchsorted(self.classes_, y)

    def _targets(self, codes: NDArray[np.int64]) -> Doubles:
        """Return labels of -1 and 1, one row per target."""
        count = self.classes_.size
        return np.array([one_vs_rest(codes, count, k) for k in range(target_count(count))])

    def _weigh_classes(
        self, comm: Communicator, codes: NDArray[np.int64], weights: Doubles | None
    ) -> Doubles | None:
        """Return the weights of rows times those of their classes."""
        if self.class_weight is None:
            return weights
        if self.class_weight == "balanced":
            factors = balanced_weights(comm, codes, self.classes_.size, weights)
        else:
            factors = run_collectively(comm, self._class_factors)
        return factors[codes] if weights is None else factors[codes] * weights

    def _class_factors(self) -> Doubles:
        """Return the weight of each class."""
        if self.class_weight is None or isinstance(self.class_weight, str):
            raise ValueError(
                f"{type(self).__name__}: class_weight must be a dict, 'balanced' or None, "
                f"got {self.class_weight!r}"
            )
        name = f"{type(self).__name__}: class_weight"
        return named_weights(self.class_weight, self.classes_.tolist(), name)

    def decision_function(self, X: Any) -> Doubles:
        """Return the margin of each class; for two classes, of the second."""
        margins = self._margins(X)
        return margins[:, 0] if margins.shape[1] == 1 else margins

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        labels: NDArray[Any] = self.classes_[codes]
        return labels
