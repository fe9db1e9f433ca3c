"""The rows of a training run: read, weighted, split and summarised."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...errors import DataError
from ..data.column_index import MIN_FEATURES, ActiveColumns
from ..data.labels import apply_weights, encode_labels, one_vs_rest, target_count
from ..data.shuffle import train_validation_split
from ..data.svmlight import read_svmlight
from ..solvers.learning_rate import squared_row_norms
from ..solvers.objective import LOSSES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator
    from ..data.rows import Rows
    from .config import TrainingConfig

    Doubles = NDArray[np.float64]


class Dataset(NamedTuple):
    """One rank's rows, and a summary of all ranks' rows.

    Attributes:
        train: Training rows; with classes, labels are class numbers.
        validation: Validation rows, if there are any.
        classes: Labels of the classes, ascending; None if labels are targets themselves.
        nnz: Nonzeros of all ranks' rows, for the metadata of a model.
        mean_squared_norm: Mean squared row norm, for the default learning rate.
        columns: Columns of the files that the columns of the rows stand for, if the rows have
            the active columns only.
        width: Number of columns of the files.
    """

    train: Rows
    validation: Rows | None = None
    classes: tuple[float, ...] | tuple[str, ...] | None = None
    nnz: int = 0
    mean_squared_norm: float = 0.0
    columns: NDArray[np.uint32] | None = None
    width: int = 0

    @property
    def features(self) -> int:
        """Number of columns of the files."""
        return self.train.features if self.columns is None else self.width

    @property
    def targets(self) -> int:
        """Number of binary models, or 1."""
        return 1 if self.classes is None else target_count(len(self.classes))

    def target_labels(self, labels: Doubles, k: int) -> Doubles:
        """Return the labels of a target: one-vs-rest for classes."""
        return labels if self.classes is None else one_vs_rest(labels, len(self.classes), k)

    def target(self, k: int) -> tuple[Rows, Rows | None]:
        """Return the rows with the labels of a target."""
        train = replace(self.train, labels=self.target_labels(self.train.labels, k))
        if self.validation is None:
            return train, None
        labels = self.target_labels(self.validation.labels, k)
        return train, replace(self.validation, labels=labels)

    def metadata(self) -> dict[str, Any]:
        """Return the facts that must not change when a run resumes."""
        validation_rows = 0 if self.validation is None else self.validation.total
        return {
            "rows": self.train.total + validation_rows,
            "nnz": self.nnz,
            "features": self.features,
            "classes": None if self.classes is None else list(self.classes),
            "weighted": self.train.weights is not None,
        }


def load_dataset(comm: Communicator, config: TrainingConfig) -> Dataset:
    """Read, weight and split the rows. Collective.

    Raises:
        DataError: On all ranks, if the data are malformed or too few.
    """
    rows = read_svmlight(
        config.files,
        comm,
        features=config.features,
        zero_based="auto" if config.zero_based is None else config.zero_based,
        cache="user" if config.cache else None,
    )
    classes: tuple[float, ...] | tuple[str, ...] | None = None
    if LOSSES[config.loss].signs:
        rows, classes = encode_labels(comm, rows)
    elif rows.label_names is not None:
        raise DataError(
            f"{config.files[0]}: labels must be numbers with --loss {config.loss}, got words "
            f"such as {rows.label_names[0]!r}; classes need --loss logistic"
        )
    rows = apply_weights(comm, rows, classes, config.weights, config.class_weight)
    if rows.total < comm.size:
        raise DataError(
            f"{config.files[0]}: {rows.total} rows for {comm.size} ranks; start at most "
            f"{rows.total}"
        )
    squares = squared_row_norms(rows).sum()
    nnz, squares = comm.allreduce(np.array([rows.nnz, squares], np.float64))
    columns, width = None, rows.features
    lossless = config.compress is None or config.topology is not None
    if lossless and config.communication == "sparse":
        rows, columns = _compact(comm, rows)
    train, validation = rows, None
    if config.validation_fraction:
        train, validation = train_validation_split(
            comm, rows, config.validation_fraction, config.seed
        )
    mean_squared_norm = float(squares) / rows.total
    return Dataset(train, validation, classes, int(nnz), mean_squared_norm, columns, width)


def _compact(comm: Communicator, rows: Rows) -> tuple[Rows, NDArray[np.uint32] | None]:
    """Return the rows with the active columns only, and these, if there are few."""
    if rows.features < MIN_FEATURES:
        return rows, None
    active = ActiveColumns.of(comm, rows)
    if not active.are_few:
        return rows, None
    return active.rows(rows), active.columns
