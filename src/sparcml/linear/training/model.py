"""A model that is ready to be used: kept in a file, and asked about rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import DataError
from ..data.rows import MAX_FEATURES
from ..solvers.evaluate import check_rows, margins
from ..solvers.objective import LOSSES
from .npz import store, stored

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ..data.rows import Rows

    Doubles = NDArray[np.float64]

FORMAT, VERSION = "sparcml model", 2


@dataclass(frozen=True, eq=False)
class Model:
    """Weights, and what is needed to use them.

    Attributes:
        weights: float32 or float64, one row a target: a class against all others, or a
            single one for two classes or numbers.
        intercepts: Added to the margins, one a target.
        loss: What it was made with.
        classes: Their labels, ascending: of two, those that negative and positive margins
            stand for. None if margins are the predictions themselves.
        zero_based: Whether indices of the text it was made of start at 0.
        about: How it was made, for people to read.
    """

    weights: NDArray[Any]
    intercepts: Doubles
    loss: str
    classes: tuple[float, ...] | None = None
    zero_based: bool = False
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        classes = 1 if self.classes is None else len(self.classes)
        targets = 1 if classes == 2 else classes
        if self.weights.ndim != 2 or self.intercepts.shape != self.weights.shape[:1]:
            raise ValueError(
                f"Model: weights of shape {self.weights.shape} do not fit intercepts of "
                f"{self.intercepts.shape}"
            )
        if len(self.weights) != targets or (self.classes is not None and classes < 2):
            raise ValueError(
                f"Model: {len(self.weights)} targets do not fit {classes} classes"
            )

    @property
    def features(self) -> int:
        """How many it knows."""
        return int(self.weights.shape[1])

    def margins(self, rows: Rows) -> Doubles:
        """w.x + b of each row, one column a target.

        Raises:
            DataError: If the rows have another number of features.
        """
        if rows.features != self.features:
            raise DataError(
                f"the rows have {rows.features} features, the model {self.features}"
            )
        check_rows(rows, LOSSES["squared"])  # labels may be any
        pairs = zip(self.weights, self.intercepts, strict=True)
        return np.column_stack([margins(rows, w, float(b)) for w, b in pairs])

    def labels(self, margins: Doubles) -> Doubles:
        """What is predicted."""
        if self.classes is None:
            return margins[:, 0]
        known = np.array(self.classes)
        one = margins.shape[1] == 1
        chosen = margins[:, 0] > 0 if one else margins.argmax(axis=1)
        return known[chosen.astype(np.int64)]

    def probabilities(self, margins: Doubles) -> Doubles:
        """How likely each class is, one column a class, in their order.

        Of more than two, each one's chance against all others as a share of all chances.

        Raises:
            ValueError: If the loss is not logistic: margins then are no log-odds.
        """
        if self.loss != "logistic":
            raise ValueError(f"a model of the loss {self.loss} gives no probabilities")
        if margins.shape[1] == 1:
            margins = np.hstack([-margins, margins])
        # Logarithms, of which the largest becomes 0: chances may be too small for numbers.
        logs = -np.logaddexp(0.0, -margins)
        found = np.exp(logs - logs.max(axis=1, keepdims=True))
        shares: Doubles = found / found.sum(axis=1, keepdims=True)
        return shares

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file without pickle, the same bytes for the same model.

        Of weights that are mostly zero, only features that some target uses are kept.
        """
        header = {
            "features": self.features,
            "intercepts": [float(each).hex() for each in self.intercepts],
            "loss": self.loss,
            "classes": self.classes,
            "zero_based": self.zero_based,
            "about": dict(self.about),
        }
        used = np.flatnonzero(self.weights.any(axis=0))
        arrays = {"values": self.weights}
        column = len(self.weights) * self.weights.itemsize
        if used.size * (4 + column) < self.features * column:
            arrays = {
                "indices": used.astype(np.uint32),
                "values": np.ascontiguousarray(self.weights[:, used]),
            }
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
                np.array([float.fromhex(each) for each in header["intercepts"]]),
                LOSSES[header["loss"]].name,
                None if classes is None else tuple(float(each) for each in classes),
                bool(header["zero_based"]),
                dict(header["about"]),
            )
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise DataError(f"{path}: this {FORMAT} is damaged: {error}") from error


def _weights(features: int, arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    values = arrays["values"]
    if values.dtype not in (np.float32, np.float64) or not 0 <= features <= MAX_FEATURES:
        raise ValueError(f"{features} weights of {values.dtype}")
    if values.ndim != 2:
        raise ValueError(f"values of {values.ndim} dimensions")
    indices = arrays.get("indices")
    if indices is None:
        if values.shape[1] != features:
            raise ValueError(f"{features} weights, but {values.shape[1]} values")
        return values
    if indices.dtype != np.uint32 or indices.shape != values.shape[1:]:
        raise ValueError("its indices do not fit its values")
    if indices.max(initial=0) >= max(features, 1):
        raise ValueError(f"an index beyond {features}")
    weights = np.zeros((len(values), features), values.dtype)
    weights[:, indices] = values
    return weights
