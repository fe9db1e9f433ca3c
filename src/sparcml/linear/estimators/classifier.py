"""Classifiers: each class against all others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from ...communicator.collective_errors import together
from ...errors import DataError
from ..data.labels import balanced, one_vs_rest, targets
from .agree import common_classes
from .base import LinearModel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator

    Doubles = NDArray[np.float64]


class LinearClassifier(ClassifierMixin, LinearModel):
    """One row of `coef_` a class, or a single one for the second of two classes.

    Args:
        class_weight: What rows of each class count, {class: weight}; "balanced" makes all
            classes weigh the same. It is multiplied with sample weights.
        settings: See `LinearModel`.
    """

    classes_: NDArray[Any]

    def __init__(
        self, *, class_weight: Mapping[Any, float] | str | None = None, **settings: Any
    ) -> None:
        super().__init__(**settings)
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the model of these rows; a collective call.

        Args:
            X: This rank's rows, an array or a sparse matrix.
            y: Their labels, numbers or text.
            sample_weight: What each counts; ones by default.
        """
        with self._ranks() as comm:
            X, y, weights = self._checked(comm, X, y, sample_weight)
            together(comm, lambda: y.size and check_classification_targets(y))
            self.classes_ = common_classes(comm, y)
            if self.classes_.size < 2:
                found = ", ".join(repr(label) for label in self.classes_.tolist())
                raise DataError(
                    f"{type(self).__name__}: labels must be of two classes at least, got "
                    f"one class: {found}"
                )
            codes = np.searchsorted(self.classes_, y)
            weights = self._by_class(comm, codes, weights)
            self._fit(comm, X, self._targets(codes), weights)
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Go on with one pass of sgd over these rows, as if there were no others.

        Args:
            X: This rank's rows.
            y: Their labels.
            classes: All there will ever be; needed in the first call.
            sample_weight: What each row counts.
        """
        first = not hasattr(self, "coef_")
        with self._ranks() as comm:
            X, y, weights = self._checked(comm, X, y, sample_weight, reset=first)
            codes = together(comm, lambda: self._known(y, classes, first))
            weights = self._by_class(comm, codes, weights)
            self._go_on(comm, X, self._targets(codes), weights)
        return self

    def _known(self, y: NDArray[Any], classes: Any, first: bool) -> NDArray[np.int64]:
        """Labels by their number among the classes that were told."""
        name = type(self).__name__
        if y.size:
            check_classification_targets(y)
        told = None if classes is None else np.unique(classes)
        if first:
            if told is None or told.size < 2:
                raise ValueError(
                    f"{name}: the first partial_fit needs classes, two at least, got "
                    f"{classes!r}"
                )
            self.classes_ = told
        elif told is not None and not np.array_equal(told, self.classes_):
            raise ValueError(
                f"{name}: classes must stay {self.classes_.tolist()}, got {told.tolist()}"
            )
        if (strange := np.setdiff1d(y, self.classes_)).size:
            raise DataError(
                f"{name}: labels {strange.tolist()} are not among the classes "
                f"{self.classes_.tolist()}"
            )
        return np.searchsorted(self.classes_, y)

    def _targets(self, codes: NDArray[np.int64]) -> Doubles:
        """Labels of -1 and 1, one row a model."""
        count = self.classes_.size
        return np.array([one_vs_rest(codes, count, k) for k in range(targets(count))])

    def _by_class(
        self, comm: Communicator, codes: NDArray[np.int64], weights: Doubles | None
    ) -> Doubles | None:
        """The weights of rows times those of their classes."""
        if self.class_weight is None:
            return weights
        if self.class_weight == "balanced":
            factors = balanced(comm, codes, self.classes_.size, weights)
        else:
            factors = together(comm, self._factors)
        return factors[codes] if weights is None else factors[codes] * weights

    def _factors(self) -> Doubles:
        """What `class_weight` says of each class; 1 of those that it does not name."""
        if self.class_weight is None or isinstance(self.class_weight, str):
            raise ValueError(
                f"{type(self).__name__}: class_weight must be a dict, 'balanced' or None, "
                f"got {self.class_weight!r}"
            )
        labels = self.classes_.tolist()
        if strange := [label for label in self.class_weight if label not in labels]:
            raise ValueError(
                f"{type(self).__name__}: class_weight has {strange}, which are not among "
                f"the classes {labels}"
            )
        factors = np.array([float(self.class_weight.get(label, 1.0)) for label in labels])
        if not (np.isfinite(factors) & (factors >= 0)).all() or not factors.any():
            raise ValueError(
                f"{type(self).__name__}: class_weight must be finite, >= 0 and not all zero, "
                f"got {self.class_weight}"
            )
        return factors

    def decision_function(self, X: Any) -> Doubles:
        """How far each row is on the side of each class; for two classes, of the second."""
        found = self._margins(X)
        return found[:, 0] if found.shape[1] == 1 else found

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row."""
        found = self.decision_function(X)
        codes = (found > 0).astype(np.int64) if found.ndim == 1 else found.argmax(axis=1)
        labels: NDArray[Any] = self.classes_[codes]
        return labels
