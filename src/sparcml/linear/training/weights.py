"""What rows count, by their classes and by a file with a number for each."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sparcml.communicator.collective_errors import together
from sparcml.errors import DataError
from sparcml.linear.data.divide import subset
from sparcml.linear.data.labels import balanced

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from sparcml import Communicator
    from sparcml.linear import Rows
    from sparcml.linear.training.config import TrainingConfig

    Doubles = NDArray[np.float64]

BALANCED = "balanced"


def parse_class_weight(text: str | None) -> dict[float, float] | str | None:
    """Either balanced, or what rows of some labels count: 1:5 or 1:5,-1:0.5.

    Raises:
        ValueError: If it is neither.
    """
    if text in (None, BALANCED):
        return text
    found: dict[float, float] = {}
    for part in str(text).split(","):
        label, _, weight = part.rpartition(":")
        try:
            found[float(label)] = float(weight)
        except ValueError:
            raise ValueError(
                f"class-weight must be {BALANCED} or LABEL:WEIGHT, with commas between "
                f"several, got {text!r}"
            ) from None
        if not 0 <= float(weight) < math.inf:
            raise ValueError(f"class-weight: weights must be finite and >= 0, got {part!r}")
    return found


def apply_weights(
    comm: Communicator,
    rows: Rows,
    classes: tuple[float, ...] | None,
    settings: TrainingConfig,
) -> Rows:
    """The rows with their weights, 1 on average; those of weight 0 are left out. Collective.

    Args:
        comm: The ranks.
        rows: This rank's; labels are numbers of classes.
        classes: The labels in the text.
        settings: With the file, and what classes count.

    Raises:
        DataError: On all ranks, if the file does not fit, or nothing is left.
    """
    path, rule = settings.weights, parse_class_weight(settings.class_weight)
    if path is None and rule is None:
        return rows
    weights = np.ones(len(rows))
    if path is not None:
        weights = together(comm, lambda: _read(path, rows))
    if rule is not None and classes is not None:
        codes = rows.labels.astype(np.int64)
        factors = (
            balanced(comm, codes, len(classes), weights)
            if isinstance(rule, str)
            else _named(rule, classes)
        )
        weights *= factors[codes]
    if not comm.allreduce(np.array([weights.sum()]))[0]:
        raise DataError("all rows weigh nothing: there is nothing to learn from")
    rows = subset(comm, replace(rows, weights=weights), weights > 0)
    assert rows.weights is not None  # given above
    mean = comm.allreduce(np.array([rows.weights.sum()]))[0] / rows.total
    return replace(rows, weights=rows.weights / mean)


def _named(rule: dict[float, float], classes: tuple[float, ...]) -> Doubles:
    if strange := [label for label in rule if label not in classes]:
        raise DataError(
            f"class-weight has the label {strange[0]:g}, which no row has: there are "
            f"{', '.join(f'{label:g}' for label in classes[:5])}"
        )
    return np.array([rule.get(label, 1.0) for label in classes])


def _read(path: Path, rows: Rows) -> Doubles:
    """This rank's of all rows' weights, a number a line."""
    found = []
    with path.open(encoding="utf-8", errors="backslashreplace") as file:
        for number, line in enumerate(file, start=1):
            try:
                weight = float(line)
            except ValueError:
                weight = math.nan
            if not 0 <= weight < math.inf:
                raise DataError(
                    f"{path}, line {number}: a weight must be a finite number >= 0, got "
                    f"{line.strip()[:20]!r}"
                )
            found.append(weight)
    if len(found) != rows.total:
        raise DataError(
            f"{path}: {len(found)} weights for {rows.total} rows: there must be a line for "
            f"each"
        )
    return np.array(found[rows.first : rows.first + len(rows)])
