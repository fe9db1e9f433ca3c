"""Class labels as numbers, one-vs-rest targets, and weights of classes and rows."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...communicator.collective_errors import allgather_text, run_collectively
from ...errors import DataError
from .shuffle import select_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator
    from .rows import Rows

    Doubles = NDArray[np.float64]

BALANCED = "balanced"
SHOWN = 5  # labels in an error message


def unique_labels(comm: Communicator, labels: NDArray[Any]) -> NDArray[Any]:
    """Return the sorted unique labels of all ranks: numbers or text. Collective.

    Raises:
        DataError: If labels are text on some ranks and numbers on others.
    """
    own = np.unique(labels)
    if comm.size == 1:
        return own
    gathered = [json.loads(text) for text in allgather_text(comm, json.dumps(own.tolist()))]
    if len({isinstance(label, str) for labels in gathered for label in labels}) > 1:
        raise DataError("labels must all be text or all numbers; ranks have both")
    everywhere = [label for labels in gathered for label in labels]
    return np.unique(np.array(everywhere, object if own.dtype.kind == "O" else None))


def encode_labels(
    comm: Communicator, rows: Rows
) -> tuple[Rows, tuple[float, ...] | tuple[str, ...]]:
    """Return the rows with labels 0, 1, 2, ..., and the classes they stand for. Collective.

    Raises:
        DataError: On all ranks, if there is one class only, or more than two of which some
            are not integers.
    """
    classes = unique_labels(comm, rows.labels)
    names = rows.label_names
    shown = [f"{x:g}" if names is None else names[int(x)] for x in classes[:SHOWN]]
    some = ", ".join(shown) + ", ..." * (classes.size > SHOWN)
    if classes.size < 2:
        raise DataError(
            f"labels must have two classes or more, got one class ({some}); regression needs "
            f"the loss squared"
        )
    if names is not None:
        return rows, names
    if classes.size > 2 and (classes != np.round(classes)).any():
        raise DataError(
            f"labels of more than two classes must be integers, got {some}; regression needs "
            f"the loss squared"
        )
    codes = np.searchsorted(classes, rows.labels).astype(np.float64)
    return replace(rows, labels=codes), tuple(classes.tolist())


def target_count(classes: int) -> int:
    """Return the number of binary models for a number of classes."""
    return 1 if classes == 2 else classes


def one_vs_rest(codes: NDArray[Any], classes: int, target: int) -> Doubles:
    """Return 1 for rows of the target class and -1 for others; of two classes, the second."""
    return np.where(codes == (1 if classes == 2 else target), 1.0, -1.0)


def balanced_weights(
    comm: Communicator, codes: NDArray[np.int64], classes: int, weights: Doubles | None
) -> Doubles:
    """Return a weight per class that makes all classes weigh the same. Collective."""
    own = np.bincount(codes, weights, minlength=classes).astype(np.float64)
    masses = comm.allreduce(own)
    factors: Doubles = masses.sum() / (classes * np.where(masses, masses, 1.0))
    return factors


def named_weights(
    class_weight: Mapping[Any, float], classes: Sequence[Any], name: str
) -> Doubles:
    """Return the weight of each class; 1 for classes that `class_weight` does not name.

    Raises:
        DataError: If it names an unknown class, or weights are not finite and >= 0.
    """
    if unknown := [label for label in class_weight if label not in classes]:
        raise DataError(
            f"{name} must name existing classes, got {unknown}; the classes are "
            f"{list(classes[:SHOWN])}{', ...' * (len(classes) > SHOWN)}"
        )
    factors = np.array([float(class_weight.get(label, 1.0)) for label in classes])
    if not (np.isfinite(factors) & (factors >= 0)).all() or not factors.any():
        raise DataError(
            f"{name} must be finite, >= 0 and not all zero, got {dict(class_weight)}"
        )
    return factors


def parse_class_weight(text: str | None) -> dict[Any, float] | str | None:
    """Parse "balanced", "1:5", "1:5,-1:0.5" or "spam:5".

    Raises:
        ValueError: If the text is neither.
    """
    if text in (None, BALANCED):
        return text
    weights: dict[Any, float] = {}
    for part in str(text).split(","):
        label, _, weight = part.rpartition(":")
        try:
            weights[_number_or_word(label)] = float(weight if label else "")
        except ValueError:
            raise ValueError(
                f"fit: class-weight must be {BALANCED} or LABEL:WEIGHT, separated by commas, got "
                f"{text!r}"
            ) from None
        if not 0 <= float(weight) < math.inf:
            raise ValueError(
                f"fit: class-weight weights must be finite and >= 0, got {part!r}"
            )
    return weights


def _number_or_word(label: str) -> float | str:
    try:
        return float(label)
    except ValueError:
        return label


def apply_weights(
    comm: Communicator,
    rows: Rows,
    classes: tuple[float, ...] | tuple[str, ...] | None,
    path: Path | None,
    class_weight: str | None,
) -> Rows:
    """Return the rows with weights of mean 1, without rows of weight 0. Collective.

    Args:
        comm: The ranks.
        rows: This rank's rows; labels are class numbers.
        classes: The classes they stand for.
        path: A file with one weight per row and line.
        class_weight: A rule of `parse_class_weight`.

    Raises:
        DataError: On all ranks, if the file does not fit, or all weights are 0.
    """
    rule = parse_class_weight(class_weight)
    if path is None and rule is None:
        return rows
    weights = np.ones(len(rows))
    if path is not None:
        weights = run_collectively(comm, lambda: _read_weights(path, rows))
    if rule is not None and classes is not None:
        codes = rows.labels.astype(np.int64)
        factors = (
            balanced_weights(comm, codes, len(classes), weights)
            if isinstance(rule, str)
            else named_weights(rule, classes, "class-weight")
        )
        weights *= factors[codes]
    if not comm.allreduce(np.array([weights.sum()]))[0]:
        raise DataError("weights must not all be 0")
    rows = select_rows(comm, replace(rows, weights=weights), weights > 0)
    assert rows.weights is not None  # set above
    mean = comm.allreduce(np.array([rows.weights.sum()]))[0] / rows.total
    return replace(rows, weights=rows.weights / mean)


def _read_weights(path: Path, rows: Rows) -> Doubles:
    """Return this rank's weights from a file with a line for each row of all ranks."""
    weights = []
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
            weights.append(weight)
    if len(weights) != rows.total:
        raise DataError(
            f"{path}: {len(weights)} weights for {rows.total} rows; write one per line"
        )
    return np.array(weights[rows.first : rows.first + len(rows)])
