"""Trained models: prediction, and files."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import DataError
from ..data.column_index import MIN_FEATURES
from ..data.labels import target_count
from ..data.rows import MAX_FEATURES
from ..solvers.objective import LOSSES, check_rows, margins
from .npz import read_npz, write_npz

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from ..data.rows import Rows

    Doubles = NDArray[np.float64]

# Version 2 is that of sparcml 0.1; in 4 classes may be words, so others are written as 3.
FORMAT, VERSION, NUMBERS_VERSION = "sparcml model", 4, 3
VERSIONS = range(2, VERSION + 1)


@dataclass(frozen=True, eq=False)
class Model:
    """Weights, and what prediction needs.

    Attributes:
        weights: float32 or float64, one row per target: one per class, or a single one for two
            classes or regression. One column per feature, or per item of `columns`.
        intercepts: Added to the margins, one per target.
        loss: Name of the loss.
        classes: Labels of the classes, ascending; of two, those of negative and positive
            margins. None for regression.
        zero_based: Whether indices start at 0 in the training text.
        metadata: How the model was trained, for people to read.
        columns: Features of the columns of weights, ascending, if all other weights are zero.
        width: Number of features if there are `columns`.
    """

    weights: NDArray[Any]
    intercepts: Doubles
    loss: str
    classes: tuple[float, ...] | tuple[str, ...] | None = None
    zero_based: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    columns: NDArray[np.uint32] | None = None
    width: int = 0

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
        """Number of features."""
        return int(self.weights.shape[1]) if self.columns is None else self.width

    def margins(self, rows: Rows) -> Doubles:
        """Return w.x + b of each row, one column per target.

        Raises:
            DataError: If the rows have another number of features.
        """
        if rows.features != self.features:
            raise DataError(
                f"rows must have {self.features} features, as the model, got {rows.features}"
            )
        if self.columns is not None:
            rows = _renumber(rows, self.columns)
        return self.column_margins(rows)

    def column_margins(self, rows: Rows) -> Doubles:
        """Return the margins of rows whose columns are those of `weights`."""
        check_rows(rows, LOSSES["squared"])  # accepts any labels
        pairs = zip(self.weights, self.intercepts, strict=True)
        return np.column_stack([margins(rows, w, float(b)) for w, b in pairs])

    def labels(self, margins: Doubles) -> NDArray[Any]:
        """Return the predicted labels: numbers, or words if the classes are."""
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
        if self.columns is not None or nonzero.size * (4 + column) < self.features * column:
            indices = nonzero if self.columns is None else self.columns[nonzero]
            arrays = {
                "indices": indices.astype(np.uint32),
                "values": np.ascontiguousarray(self.weights[:, nonzero]),
            }
        words = self.classes is not None and isinstance(self.classes[0], str)
        version = VERSION if words else NUMBERS_VERSION
        write_npz(Path(path), FORMAT, version, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """Read a file that `save` wrote, also in version 0.1.

        Raises:
            DataError: If the file has another format or version, or is damaged.
        """
        header, arrays = read_npz(Path(path), FORMAT, VERSIONS)
        try:
            classes = header["classes"]
            features = int(header["features"])
            weights, columns = _weights(features, arrays)
            return cls(
                weights,
                np.array([float.fromhex(each) for each in header["intercepts"]]),
                LOSSES[header["loss"]].name,
                None if classes is None else _classes(classes),
                bool(header["zero_based"]),
                dict(header["about" if header["version"] == 2 else "metadata"]),
                columns,
                0 if columns is None else features,
            )
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise DataError(f"{path}: the {FORMAT} is damaged: {error}") from error


def _classes(values: Sequence[Any]) -> tuple[float, ...] | tuple[str, ...]:
    if all(isinstance(each, str) for each in values):
        return tuple(values)
    return tuple(float(each) for each in values)


def _renumber(rows: Rows, columns: NDArray[np.uint32]) -> Rows:
    """Return the entries of some columns, with the positions of these as column numbers."""
    positions = np.searchsorted(columns, rows.indices)
    found = columns[np.minimum(positions, columns.size - 1)] if columns.size else positions
    known = found == rows.indices if columns.size else np.zeros(positions.size, bool)
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(known)])
    return replace(
        rows,
        indptr=before[rows.indptr],
        indices=positions[known].astype(np.uint32),
        values=rows.values[known],
        features=columns.size,
    )


def _weights(
    features: int, arrays: Mapping[str, NDArray[Any]]
) -> tuple[NDArray[Any], NDArray[np.uint32] | None]:
    """Return the weights, and the features of their columns if others are zero."""
    values = arrays["values"]
    if values.dtype not in (np.float32, np.float64) or not 0 <= features <= MAX_FEATURES:
        raise ValueError(f"{features} weights of dtype {values.dtype}")
    if values.ndim != 2:
        raise ValueError(f"values must have 2 dimensions, got {values.ndim}")
    indices = arrays.get("indices")
    if indices is None:
        if values.shape[1] != features:
            raise ValueError(f"values must have {features} columns, got {values.shape[1]}")
        return values, None
    if indices.dtype != np.uint32 or indices.shape != values.shape[1:]:
        raise ValueError("indices must be uint32, one per column of values")
    if indices.max(initial=0) >= max(features, 1):
        raise ValueError(f"indices must be below {features}")
    if (np.diff(indices.astype(np.int64)) <= 0).any():
        raise ValueError("indices must ascend")
    if features >= MIN_FEATURES:
        return values, indices
    weights = np.zeros((len(values), features), values.dtype)
    weights[:, indices] = values
    return weights, None
