"""Trained models: prediction, and files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import DataError
from ..data.labels import target_count
from ..data.rows import MAX_FEATURES
from ..solvers.objective import LOSSES, check_rows, margins
from .npz import read_npz, write_npz

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ..data.rows import Rows

    Doubles = NDArray[np.float64]

FORMAT, VERSION = "sparcml model", 3
VERSIONS = range(2, VERSION + 1)  # 2 is that of sparcml 0.1


@dataclass(frozen=True, eq=False)
class Model:
    """Weights, and what prediction needs.

    Attributes:
        weights: float32 or float64, one row per target: one per class, or a single one for two
            classes or regression.
        intercepts: Added to the margins, one per target.
        loss: Name of the loss.
        classes: Labels of the classes, ascending; of two, those of negative and positive
            margins. None for regression.
        zero_based: Whether indices start at 0 in the training text.
        metadata: How the model was trained, for people to read.
    """

    weights: NDArray[Any]
    intercepts: Doubles
    loss: str
    classes: tuple[float, ...] | None = None
    zero_based: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        classes = 1 if self.classes is None else len(self.classes)
        if self.weights.ndim != 2 or self.intercepts.shape != self.weights.shape[:1]:
            raise ValueError(
                f"Model: intercepts must have one item per row of weights, got shapes "
                f"{self.intercepts.shape} and {self.weights.shape}"
            )
        binary = self.classes is not None and classes < 2
        if len(self.weights) != target_count(classes) or binary:
            raise ValueError(
                f"Model: weights must have one row per class, or one for two classes, got "
                f"{len(self.weights)} for {classes}"
            )

    @property
    def features(self) -> int:
        """Number of columns."""
        return int(self.weights.shape[1])

    def margins(self, rows: Rows) -> Doubles:
        """Return w.x + b of each row, one column per target.

        Raises:
            DataError: If the rows have another number of features.
        """
        if rows.features != self.features:
            raise DataError(
                f"rows must have {self.features} features, as the model, got {rows.features}"
            )
        check_rows(rows, LOSSES["squared"])  # accepts any labels
        pairs = zip(self.weights, self.intercepts, strict=True)
        return np.column_stack([margins(rows, w, float(b)) for w, b in pairs])

    def labels(self, margins: Doubles) -> Doubles:
        """Return the predicted labels."""
        if self.classes is None:
            return margins[:, 0]
        single = margins.shape[1] == 1
        codes = margins[:, 0] > 0 if single else margins.argmax(axis=1)
        return np.array(self.classes)[codes.astype(np.int64)]

    def probabilities(self, margins: Doubles) -> Doubles:
        """Return the probability of each class, one column per class, in their order.

        For more than two classes, the one-vs-rest probabilities are normalised to sum to 1.

        Raises:
            ValueError: If the loss is not logistic, so that margins are not log-odds.
        """
        if self.loss != "logistic":
            raise ValueError(f"probabilities: loss must be logistic, got {self.loss}")
        if margins.shape[1] == 1:
            margins = np.hstack([-margins, margins])
        # Logarithms relative to the largest: probabilities may underflow.
        logs = -np.logaddexp(0.0, -margins)
        relative = np.exp(logs - logs.max(axis=1, keepdims=True))
        probabilities: Doubles = relative / relative.sum(axis=1, keepdims=True)
        return probabilities

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file without pickle, the same bytes for the same model.

        If most weights are zero, only columns with a nonzero weight are stored.
        """
        header = {
            "features": self.features,
            "intercepts": [float(each).hex() for each in self.intercepts],
            "loss": self.loss,
            "classes": self.classes,
            "zero_based": self.zero_based,
            "metadata": dict(self.metadata),
        }
        nonzero = np.flatnonzero(self.weights.any(axis=0))
        arrays = {"values": self.weights}
        column = len(self.weights) * self.weights.itemsize
        if nonzero.size * (4 + column) < self.features * column:
            arrays = {
                "indices": nonzero.astype(np.uint32),
                "values": np.ascontiguousarray(self.weights[:, nonzero]),
            }
        write_npz(Path(path), FORMAT, VERSION, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """Read a file that `save` wrote, also in version 0.1.

        Raises:
            DataError: If the file has another format or version, or is damaged.
        """
        header, arrays = read_npz(Path(path), FORMAT, VERSIONS)
        try:
            classes = header["classes"]
            return cls(
                _weights(int(header["features"]), arrays),
                np.array([float.fromhex(each) for each in header["intercepts"]]),
                LOSSES[header["loss"]].name,
                None if classes is None else tuple(float(each) for each in classes),
                bool(header["zero_based"]),
                dict(header["about" if header["version"] == 2 else "metadata"]),
            )
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise DataError(f"{path}: the {FORMAT} is damaged: {error}") from error


def _weights(features: int, arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    values = arrays["values"]
    if values.dtype not in (np.float32, np.float64) or not 0 <= features <= MAX_FEATURES:
        raise ValueError(f"{features} weights of dtype {values.dtype}")
    if values.ndim != 2:
        raise ValueError(f"values must have 2 dimensions, got {values.ndim}")
    indices = arrays.get("indices")
    if indices is None:
        if values.shape[1] != features:
            raise ValueError(f"values must have {features} columns, got {values.shape[1]}")
        return values
    if indices.dtype != np.uint32 or indices.shape != values.shape[1:]:
        raise ValueError("indices must be uint32, one per column of values")
    if indices.max(initial=0) >= max(features, 1):
        raise ValueError(f"indices must be below {features}")
    weights = np.zeros((len(values), features), values.dtype)
    weights[:, indices] = values
    return weights
