"""Settings of Compressed: their types, and its allreduces, cost and label in the planner."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..network.candidates import Planning, Reduction, planned_algorithms
from ..quantize.base import Quantizer
from ..sparsify.base import Sparsifier
from .base import NANO
from .schedule import at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .compressed import Compressed
    from .gradients import Shape

AUTO = "auto"
# Nanoseconds per value on one core (AMD EPYC, AVX2) without the allreduce: a step of
# `aggregate` on one rank, 4 M float32 values, medians of 9 runs.
FULL_COST = 1.15  # without a sparsifier
SELECTED_COST = 9.0  # per selected value
SAMPLE = 1 << 20  # values for the bytes per value of a quantizer


def check_part(
    parameter: str, value: object, types: tuple[type, ...], example: str
) -> None:
    """Raise a TypeError unless a setting is None or has one of the types."""
    for other, remedy in ((Quantizer, "quantize"), (Sparsifier, "sparsify")):
        if isinstance(value, other) and not isinstance(value, types):
            raise TypeError(
                f"Compressed: {parameter} must not be a {other.__name__.lower()}, got {value}; "
                f"write Compressed({remedy}={value})"
            )
    if value is not None and not isinstance(value, types):
        raise TypeError(
            f"Compressed: {parameter} must be None or an object such as {example}, "
            f"got {value!r}"
        )


def compressed_planning(method: Compressed, shapes: Sequence[Shape]) -> Planning:
    """Describe the allreduce of large parameters and that of small ones."""
    total = sum(map(math.prod, shapes))
    sizes = [math.prod(s) for s in shapes if method.compresses_shape("parameter", s)]
    large = sum(sizes) or total  # a single vector is compressed as well
    sparsifier, quantizer = at(method.sparsify, 0), method.quantize
    nnz, value_bytes, cost = large, 4.0, FULL_COST
    if quantizer is not None:
        value_bytes = quantizer.nbytes(SAMPLE) / SAMPLE
        cost += quantizer.planning_cost
    if sparsifier is not None:
        nnz = sparsifier.count(large) or large
        ratio = getattr(sparsifier, "ratio", None) or nnz / large
        cost = sparsifier.planning_cost + SELECTED_COST * ratio
        if quantizer is not None:  # the sender and the owner of a range
            cost += 2 * quantizer.planning_cost * ratio
    return Planning(
        _label(method, sparsifier),
        _algorithms(method, sparsifier),
        NANO * cost,
        (
            Reduction(large, nnz, value_bytes),
            Reduction(total - large, total - large, algorithm="native"),
        ),
        ratio=getattr(sparsifier, "ratio", None),
    )


def _label(method: Compressed, sparsifier: Sparsifier | None) -> str:
    if sparsifier is None:
        return type(method).__name__ if method.quantize is None else method.quantize.label
    if method.algorithm == "oktopk":
        return f"Ok-{sparsifier.label}"
    label = sparsifier.label
    if method.quantize is not None:
        label += f", {method.quantize.short_label}"
    return label if method.algorithm == AUTO else f"{label}, {method.algorithm}"


def _algorithms(method: Compressed, sparsifier: Sparsifier | None) -> tuple[str, ...]:
    if method.algorithm != AUTO:
        return (method.algorithm,)
    sparse, quantized = sparsifier is not None, method.quantize is not None
    return planned_algorithms(sparse=sparse, quantized=quantized)
