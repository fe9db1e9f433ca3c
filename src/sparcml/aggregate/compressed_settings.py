"""Settings of Compressed: their types, and its allreduces, cost and label in the planner."""

from __future__ import annotations

import math
import sys
import warnings
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from ..communicator.arguments import check_reduction
from ..planning.candidates import Planning, Reduction, planned_algorithms
from ..quantize import QSGD, Half
from ..quantize.base import Quantizer
from ..sparsify import TopK
from ..sparsify.base import Sparsifier
from .base import NANO
from .momentum import check_momentum
from .schedule import Schedule, at, check_warm_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .compressed import Compressed
    from .gradients import Shape

AUTO = "auto"
STACKLEVEL = 4  # of the caller of Compressed(...), for warnings
# Nanoseconds per value on one core (AMD EPYC, AVX2) without the allreduce: a step of
# `aggregate` on one rank, 4 M float32 values, medians of 9 runs.
FULL_COST = 1.15  # without a sparsifier
SELECTED_COST = 9.0  # per selected value
CODER_COST = 20.0  # of a coder at 2 or 3 bits: encode 5, decode 5, decode sums 10
SAMPLE = 1 << 20  # values for the bytes per value of a quantizer


def check_settings(method: Compressed) -> None:
    """Raise for settings that make no sense, and warn of those that may not converge."""
    _check_part("sparsify", method.sparsify, (Sparsifier, Schedule), "sparcml.TopK(0.01)")
    _check_part("quantize", method.quantize, (Quantizer,), "sparcml.QSGD(bits=4)")
    _check_part("small", method.small, (Quantizer,), "sparcml.QSGD(bits=8, bucket=128)")
    if method.small is not None and method.small.biased and method.small.name != Half.name:
        raise ValueError(
            f"Compressed: small must be an unbiased quantizer or Half, got {method.small}; "
            f"what it loses would never be corrected"
        )
    _check_part("global_topk", method.global_topk, (TopK,), "sparcml.TopK(0.01)")
    if method.global_topk is not None and method.global_topk.bucket is not None:
        raise ValueError(
            f"Compressed: global_topk must not have buckets, got {method.global_topk}"
        )
    check_reduction("Compressed", "sum", method.algorithm, method.quantize)
    check_momentum("Compressed", method.momentum, method.clip)
    if not method.momentum and (method.nesterov or method.masking):
        raise ValueError(
            f"Compressed: momentum must be positive with nesterov or masking, got "
            f"{method.momentum}"
        )
    check_warm_up("Compressed", method.warm_up, method.steps)
    if method.fence is not None and (not method.fence > 0 or method.quantize is None):
        raise ValueError(
            f"Compressed: fence must be positive, and there must be a quantizer, got "
            f"{method.fence} and quantize={method.quantize}"
        )
    if method.warm_up and not isinstance(method.sparsify, Sparsifier):
        raise ValueError(
            f"Compressed: sparsify must be a sparsifier if there is a warm_up, got "
            f"{method.sparsify}; a Schedule has its own"
        )
    method.sparsifier_at(0)  # raises if a warm-up cannot change its ratio
    parts = (at(method.sparsify, 0), method.quantize, method.global_topk)
    biased = [
        m for m in parts if m is not None and m.biased and not m.published_without_feedback
    ]
    if biased and not method.error_feedback:
        warnings.warn(
            f"Compressed: {', '.join(map(str, biased))} without error feedback may not "
            f"converge, since its errors are never corrected",
            stacklevel=STACKLEVEL,
        )


def _check_part(
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
    is_scheduled = isinstance(method.sparsify, Schedule)
    sparsifier, quantizer = _typical_sparsifier(method), method.quantize
    nnz, value_bytes, cost = large, 4.0, FULL_COST
    if quantizer is not None:
        value_bytes = _value_bytes(quantizer)
        cost += quantizer.planning_cost
        if getattr(quantizer, "coder", None) is not None:
            cost += CODER_COST
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
            _small_reduction(method, total - large),
        ),
        ratio=None if is_scheduled else getattr(sparsifier, "ratio", None),
    )


def _typical_sparsifier(method: Compressed) -> Sparsifier | None:
    """Return the sparsifier; of a schedule one with its mean ratio, or its last."""
    if isinstance(method.sparsify, Schedule) and method.steps is not None:
        return method.sparsify.mean(method.steps)
    return at(method.sparsify, sys.maxsize)


@cache
def _value_bytes(quantizer: Quantizer) -> float:
    """Return the bytes per value; half of the values are sums, which may have other bits."""
    if not isinstance(quantizer, QSGD) or quantizer.coder is None:
        return quantizer.nbytes(SAMPLE) / SAMPLE
    # Heavy tails, as of gradients: within 15 % of the bytes of the character GPT.
    sample = np.random.default_rng(0).standard_t(3, SAMPLE // 8).astype(np.float32)
    pair = quantizer, quantizer.for_reduced(1)
    return sum(q.encode(sample).nbytes for q in pair) / (2 * sample.size)


def _small_reduction(method: Compressed, count: int) -> Reduction:
    if method.small is None:
        return Reduction(count, count, algorithm="native")
    return Reduction(count, count, method.small.nbytes(SAMPLE) / SAMPLE)


def _label(method: Compressed, sparsifier: Sparsifier | None) -> str:
    if sparsifier is None:
        return type(method).__name__ if method.quantize is None else method.quantize.label
    label = sparsifier.label
    if isinstance(method.sparsify, Schedule):
        first = getattr(method.sparsify.at(0), "ratio", None)
        last = getattr(method.sparsify.at(sys.maxsize), "ratio", None)
        if first and last:
            label = f"{type(sparsifier).__name__} {100 * first:g}-{100 * last:g} %"
    if method.quantize is not None:
        label += f", {method.quantize.short_label}"
    return label if method.algorithm == AUTO else f"{label}, {method.algorithm}"


def _algorithms(method: Compressed, sparsifier: Sparsifier | None) -> tuple[str, ...]:
    if method.algorithm != AUTO:
        return (method.algorithm,)
    sparse, quantized = sparsifier is not None, method.quantize is not None
    return planned_algorithms(sparse=sparse, quantized=quantized)
