"""Scales that all ranks share, so that quantized values of any magnitude can be summed.

Several parameters are fused into one message, and one bucket of a quantizer may hold values of
two of them: quantized with the scale of large values, small ones would be lost. Each parameter
is therefore divided by a power of two near its root mean square, on which the ranks agree.
This also keeps tiny and huge values within the range of float16 and float32.

Some quantizers need more: TernGrad's ranks agree on the largest magnitude s of each parameter
after clipping. Each rank then sends -1, 0 or 1 for every value / s, and sums of these are
integers between -P and P, which are sent back without loss.

Reference: Wen et al.: TernGrad, NeurIPS 2017.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..stream import Stream
from .error_feedback import squared_norm
from .reduce import allreduce_streams, allreduce_values, keep_largest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..communicator.communicator import Communicator
    from ..quantize import Quantizer
    from ..quantize.base import ScaleRule
    from ..sparsify import Sparsifier, TopK
    from ..stream.arrays import Values
    from .reduce import Pair


@dataclass(frozen=True)
class SharedScale:
    """One scale per stream, equal on all ranks; None if the quantizer needs none."""

    scales: tuple[float, ...] | None
    rule: ScaleRule | None = None

    @classmethod
    def agree(
        cls, comm: Communicator, streams: Sequence[Stream], quantize: Quantizer | None
    ) -> SharedScale:
        """Agree on the scales. Collective if the quantizer needs any."""
        if comm.size == 1 or quantize is None or not _needs_scales(quantize, streams):
            return cls(None)
        if (rule := quantize.scale_rule) is not None:
            if rule.scale is not None:
                return cls((rule.scale,) * len(streams), rule)
            magnitudes = [_largest(s, rule) for s in streams]
            return cls(tuple(s or 1.0 for s in maximum_over_ranks(comm, magnitudes)), rule)
        squares = [squared_norm(s.raw_values) / max(1, s.nnz * s.block) for s in streams]
        return cls(tuple(_power_of_two(s) for s in maximum_over_ranks(comm, squares)))

    def divide(self, streams: Sequence[Stream]) -> Sequence[Stream]:
        """Return the streams, clipped and divided by their scales."""
        if self.scales is None:
            return streams
        pairs = zip(streams, self.scales, strict=True)
        return [_apply(np.divide, _clip(x, self.rule), scale) for x, scale in pairs]

    def multiply(self, pairs: list[Pair]) -> list[Pair]:
        """Return the results and their `seen`, multiplied by the scales."""
        if self.scales is None:
            return pairs
        return [
            (_apply(np.multiply, total, scale), _apply(np.multiply, seen, scale))
            for (total, seen), scale in zip(pairs, self.scales, strict=True)
        ]


def _needs_scales(quantize: Quantizer, streams: Sequence[Stream]) -> bool:
    """Return False for a single float32 stream whose buckets have scales of their own."""
    return not quantize.has_scales or len(streams) > 1 or streams[0].dtype != np.float32


def maximum_over_ranks(comm: Communicator, values: Sequence[float]) -> list[float]:
    """Return the elementwise maximum over all ranks; NaN wins."""
    # The vector is short: recursive doubling is the best algorithm, and "auto" need not look.
    array = np.array(values, np.float64)
    largest = comm.allreduce(array, op="max", algorithm="recursive_double")
    return [float(x) for x in largest]


def _power_of_two(mean_square: float) -> float:
    """Return a power of two near the root; 1 if the root is zero or not finite."""
    if not 0 < mean_square < math.inf:
        return 1.0
    _, exponent = math.frexp(math.sqrt(mean_square))
    return math.ldexp(1.0, exponent)


def _apply(
    operation: Callable[[Values, Values], Values], x: Stream, scale: float
) -> Stream:
    with np.errstate(all="ignore"):  # NaN and infinity are propagated here
        values = operation(x.raw_values, x.dtype.type(scale))
    return Stream.unchecked(x.size, x.raw_indices, values, x.block, x.fill, scratch=True)


def _clip_bound(x: Stream, rule: ScaleRule | None) -> float:
    """Return the magnitude at which values are clipped; infinite if they do not vary."""
    if rule is None or rule.clip is None:
        return math.inf
    values = x.raw_values
    if not rule.count_zeros and np.count_nonzero(values) < values.size:
        values = values[values != 0]
    if not values.size:
        return math.inf
    with np.errstate(all="ignore"):
        sigma = float(np.std(values, dtype=np.float64))
    return rule.clip * sigma if sigma > 0 else math.inf


def _largest(x: Stream, rule: ScaleRule) -> float:
    """Return the largest magnitude after clipping; NaN if there is one."""
    largest = float(np.max(np.abs(x.raw_values), initial=0.0))
    return largest if math.isnan(largest) else min(largest, _clip_bound(x, rule))


def _clip(x: Stream, rule: ScaleRule | None) -> Stream:
    bound = _clip_bound(x, rule)
    if bound == math.inf:
        return x
    values = np.clip(x.raw_values, -bound, bound)
    return Stream.unchecked(x.size, x.raw_indices, values, x.block, x.fill)


def allreduce_scaled(
    comm: Communicator,
    streams: Sequence[Stream],
    *,
    quantize: Quantizer | None,
    algorithm: str,
    fixed_nnz: bool,
    feedback: bool,
    seed: int,
) -> list[Pair]:
    """Sum each stream as `allreduce_streams` does, divided by a shared scale in flight."""
    scale = SharedScale.agree(comm, streams, quantize)
    pairs = allreduce_streams(
        comm,
        scale.divide(streams),
        quantize=None if quantize is None else quantize.for_fused(),
        algorithm=algorithm,
        fixed_nnz=fixed_nnz,
        feedback=feedback,
        seed=seed,
    )
    return scale.multiply(pairs)


def allreduce_selected(
    comm: Communicator,
    streams: Sequence[Stream],
    sparsifier: Sparsifier | None,
    *,
    global_topk: TopK | None,
    quantize: Quantizer | None,
    algorithm: str,
    feedback: bool,
    seed: int,
) -> list[Pair]:
    """Sum the selections of a sparsifier over all ranks. Collective.

    Args:
        comm: The communicator.
        streams: The selections of this rank, one per parameter.
        sparsifier: Selected them; None if all entries are sent.
        global_topk: Keeps the largest entries of each sum; None keeps all.
        quantize: Quantizer of the values in flight.
        algorithm: Allreduce algorithm, as for `comm.allreduce`.
        feedback: Whether `seen` is needed.
        seed: Random seed of the quantizer.

    Returns:
        The sums, and `seen` of each.
    """
    if not streams:
        return []
    allreduce = partial(
        allreduce_scaled,
        comm,
        quantize=quantize,
        algorithm=algorithm,
        feedback=feedback,
        seed=seed,
    )
    if has_shared_indices(sparsifier):
        pairs = allreduce_values(streams, partial(allreduce, fixed_nnz=True))
    else:
        counts = [sparsifier and sparsifier.count(s.size) for s in streams]
        fixed = sparsifier is None or None not in counts
        pairs = allreduce(streams, fixed_nnz=fixed)
    if global_topk is None:
        return pairs
    return [keep_largest(global_topk, *pair) for pair in pairs]


def has_shared_indices(sparsifier: Sparsifier | None) -> bool:
    """Return whether all ranks select the same indices."""
    return sparsifier is not None and sparsifier.shared_indices
