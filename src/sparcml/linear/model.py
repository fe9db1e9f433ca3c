"""A model that is ready to be used: kept in a file, and asked about rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DataError
from .evaluate import check_rows, margins
from .losses import LOSSES
from .rows import MOST_FEATURES
from .stored import store, stored

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from .rows import Rows

    Doubles = NDArray[np.float64]

FORMAT, VERSION = "sparcml model", 1


@dataclass(frozen=True, eq=False)
class Model:
    """Weights, and what is needed to use them.

    Attributes:
        weights: One a feature, float32 or float64.
        intercept: Added to every margin.
        loss: What it was made with.
        classes: The labels that negative and positive margins stand for; None if margins
            are the predictions themselves.
        zero_based: Whether indices of the text it was made of start at 0.
        about: How it was made, for people to read.
    """

    weights: NDArray[Any]
    intercept: float
    loss: str
    classes: tuple[float, float] | None = None
    zero_based: bool = False
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def features(self) -> int:
        """How many it knows."""
        return self.weights.size

    def margins(self, rows: Rows) -> Doubles:
        """w.x + b of each row.

        Raises:
            DataError: If the rows have another number of features.
        """
        if rows.features != self.features:
            raise DataError(
                f"the rows have {rows.features} features, the model {self.features}"
            )
        check_rows(rows, LOSSES["squared"])  # labels may be any
        return margins(rows, self.weights, self.intercept)

    def labels(self, margins: Doubles) -> Doubles:
        """What is predicted."""
        if self.classes is None:
            return margins
        low, high = self.classes
        return np.where(margins > 0, high, low)

    def probabilities(self, margins: Doubles) -> Doubles:
        """Of the second class.

        Raises:
            ValueError: If the loss is not logistic: margins then are no log-odds.
        """
        if self.loss != "logistic":
            raise ValueError(f"a model of the loss {self.loss} gives no probabilities")
        small = np.exp(-np.abs(margins))  # never overflows
        return np.where(margins > 0, 1.0, small) / (1.0 + small)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file without pickle, the same bytes for the same model.

        Weights that are mostly zero are kept as indices and values.
        """
        header = {
            "features": self.features,
            "intercept": float(self.intercept).hex(),
            "loss": self.loss,
            "classes": self.classes,
            "zero_based": self.zero_based,
            "about": dict(self.about),
        }
        used = np.flatnonzero(self.weights)
        arrays = {"values": self.weights}
        if used.size * (4 + self.weights.itemsize) < self.weights.nbytes:
            arrays = {"indices": used.astype(np.uint32), "values": self.weights[used]}
        store(Path(path), FORMAT, VERSION, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """From a file that `save` has written.

        Raises:
            DataError: If it is none, of another version, or damaged.
        """
        header, arrays = stored(Path(path), FORMAT, VERSION)
        try:
            classes = header["classes"]
            return cls(
                _weights(int(header["features"]), arrays),
                float.fromhex(header["intercept"]),
                LOSSES[header["loss"]].name,
                None if classes is None else (float(classes[0]), float(classes[1])),
                bool(header["zero_based"]),
                dict(header["about"]),
            )
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise DataError(f"{path}: this {FORMAT} is damaged: {error}") from error


def _weights(features: int, arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    values = arrays["values"]
    if values.dtype not in (np.float32, np.float64) or not 0 <= features <= MOST_FEATURES:
        raise ValueError(f"{features} weights of {values.dtype}")
    indices = arrays.get("indices")
    if indices is None:
        if values.shape != (features,):
            raise ValueError(f"{features} weights, but {values.shape} values")
        return values
    if indices.dtype != np.uint32 or indices.shape != values.shape or values.ndim != 1:
        raise ValueError("its indices do not fit its values")
    if indices.max(initial=0) >= max(features, 1):
        raise ValueError(f"an index beyond {features}")
    weights = np.zeros(features, values.dtype)
    weights[indices] = values
    return weights
