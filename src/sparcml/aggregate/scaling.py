"""One scale a parameter for all ranks, so that coded values of any size can be summed.

Values of several parameters travel together, and a bucket of a quantizer may hold some of
two: coded with the scale of large ones, small ones would be lost. So each parameter is
divided by about its own size first, a power of two, on which the ranks agree. That also
keeps what is tiny or huge within the range of float16 and of float32.

TernGrad goes further: ranks agree on the largest magnitude s of each parameter, after
clipping. Each sends -1, 0 or 1 for every value / s; sums of these are whole numbers between
-P and P, which travel back without loss.

Reference: Wen et al.: TernGrad, NeurIPS 2017.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..quantize import OneBit, Quantizer, Sign, TernGrad
from ..stream import Stream
from .reduce import squares_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..communicator.communicator import Communicator
    from ..stream.stream import Values
    from .reduce import Pair

BUCKET = 1024  # of quantizers that have none: a message is no vector of the caller's


def wire_quantizer(quantize: Quantizer | None) -> Quantizer | None:
    """How values are coded, once they are scaled."""
    if isinstance(quantize, TernGrad):
        return replace(quantize, clip=None, scale=1.0)
    if isinstance(quantize, OneBit | Sign) and quantize.bucket is None:
        return replace(quantize, bucket=BUCKET)
    return quantize


@dataclass(frozen=True)
class SharedScale:
    """The agreed scale of each stream; none where the quantizer does not want any."""

    scales: tuple[float, ...] | None
    clip: float | None = None

    @classmethod
    def agreed(
        cls, comm: Communicator, streams: Sequence[Stream], quantize: Quantizer | None
    ) -> SharedScale:
        """A collective call, if the quantizer wants scales."""
        if comm.size == 1 or quantize is None or not _wants_scales(quantize, streams):
            return cls(None)
        if isinstance(quantize, TernGrad):
            if quantize.scale is not None:
                return cls((quantize.scale,) * len(streams), quantize.clip)
            mine = [_largest(s, quantize.clip) for s in streams]
            return cls(tuple(s or 1.0 for s in _most(comm, mine)), quantize.clip)
        mine = [squares_of(s.raw_values) / max(1, s.nnz * s.block) for s in streams]
        return cls(tuple(_power_of_two(s) for s in _most(comm, mine)))

    def down(self, streams: Sequence[Stream]) -> Sequence[Stream]:
        """Clipped, and divided by the scale."""
        if self.scales is None:
            return streams
        pairs = zip(streams, self.scales, strict=True)
        return [_each(_clipped(x, self.clip), np.divide, s) for x, s in pairs]

    def up(self, pairs: list[Pair]) -> list[Pair]:
        """Multiplied by it again."""
        if self.scales is None:
            return pairs
        return [
            (_each(total, np.multiply, s), _each(seen, np.multiply, s))
            for (total, seen), s in zip(pairs, self.scales, strict=True)
        ]


def _wants_scales(quantize: Quantizer, streams: Sequence[Stream]) -> bool:
    """Not if one parameter of float32 is coded in buckets that have scales of their own."""
    own = getattr(quantize, "bucket", 0) != 0
    return not own or len(streams) > 1 or streams[0].dtype != np.float32


def _most(comm: Communicator, mine: Sequence[float]) -> list[float]:
    """The largest over all ranks, of each; NaN wins. Short, so no algorithm need be chosen."""
    array = np.array(mine, np.float64)
    found = comm.allreduce(array, op="max", algorithm="recursive_double")
    return [float(x) for x in found]


def _power_of_two(mean_square: float) -> float:
    """Near the root of it; 1 of what has no size."""
    if not 0 < mean_square < math.inf:
        return 1.0
    _, exponent = math.frexp(math.sqrt(mean_square))
    return math.ldexp(1.0, exponent)


def _each(x: Stream, apply: Callable[[Values, Values], Values], scale: float) -> Stream:
    with np.errstate(all="ignore"):  # NaN and infinities pass if they came so far
        values = apply(x.raw_values, x.dtype.type(scale))
    return Stream.unchecked(x.size, x.raw_indices, values, x.block, x.fill, scratch=True)


def _bound(x: Stream, clip: float | None) -> float:
    """Where values are cut off: nowhere, if they do not vary."""
    sigma = 0.0
    if clip is not None and x.nnz:
        with np.errstate(all="ignore"):
            sigma = float(np.std(x.raw_values, dtype=np.float64))
    return clip * sigma if clip is not None and sigma > 0 else math.inf


def _largest(x: Stream, clip: float | None) -> float:
    most = float(np.max(np.abs(x.raw_values), initial=0.0))
    return most if math.isnan(most) else min(most, _bound(x, clip))


def _clipped(x: Stream, clip: float | None) -> Stream:
    bound = _bound(x, clip)
    if bound == math.inf:
        return x
    values = np.clip(x.raw_values, -bound, bound)
    return Stream.unchecked(x.size, x.raw_indices, values, x.block, x.fill)
