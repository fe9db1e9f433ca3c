"""One scale for all ranks, so that ternaries add up: TernGrad's scaler sharing.

Ranks agree on the largest magnitude s of each parameter, after clipping. Each sends -1, 0
or 1 for every value / s; sums of these are whole numbers between -P and P, which travel
back without loss.

Reference: Wen et al.: TernGrad, NeurIPS 2017.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..quantize import OneBit, Quantizer, Sign, TernGrad
from ..stream import Stream
from .exchange import scaled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..communicator import Communicator
    from .exchange import Pair

BUCKET = 1024  # of quantizers that have none: a message is no vector of the caller's


def on_the_wire(quantize: Quantizer | None) -> Quantizer | None:
    """How values are coded, once they are scaled."""
    if isinstance(quantize, TernGrad):
        return replace(quantize, clip=None, scale=1.0)
    if isinstance(quantize, OneBit | Sign) and quantize.bucket is None:
        return replace(quantize, bucket=BUCKET)
    return quantize


@dataclass(frozen=True)
class Scaled:
    """The agreed scale of each stream; none if the quantizer does not want any."""

    scales: tuple[float, ...] | None
    clip: float | None = None

    @classmethod
    def agreed(
        cls, comm: Communicator, streams: Sequence[Stream], quantize: Quantizer | None
    ) -> Scaled:
        """A collective call, if the quantizer wants scales."""
        if not isinstance(quantize, TernGrad):
            return cls(None)
        if quantize.scale is not None:
            return cls((quantize.scale,) * len(streams), quantize.clip)
        mine = np.array([_largest(s, quantize.clip) for s in streams], np.float64)
        scales = comm.allreduce(mine, op="max")
        return cls(tuple(float(s) or 1.0 for s in scales), quantize.clip)

    def down(self, streams: Sequence[Stream]) -> Sequence[Stream]:
        """Clipped, and divided by the scale."""
        if self.scales is None:
            return streams
        return [
            scaled(_clipped(stream, self.clip), 1 / s)
            for stream, s in zip(streams, self.scales, strict=True)
        ]

    def up(self, pairs: list[Pair]) -> list[Pair]:
        """Multiplied by it again."""
        if self.scales is None:
            return pairs
        return [
            (scaled(total, s), scaled(seen, s))
            for (total, seen), s in zip(pairs, self.scales, strict=True)
        ]


def _bound(x: Stream, clip: float | None) -> float:
    """Where values are cut off: nowhere, if they do not vary."""
    sigma = 0.0 if clip is None or not x.nnz else float(np.std(x.raw_values))
    return np.inf if clip is None or sigma == 0 else clip * sigma


def _largest(x: Stream, clip: float | None) -> float:
    most = float(np.max(np.abs(x.raw_values), initial=0.0))
    return min(most, _bound(x, clip)) if not np.isnan(most) else most


def _clipped(x: Stream, clip: float | None) -> Stream:
    bound = _bound(x, clip)
    if bound == np.inf:
        return x
    values = np.clip(x.raw_values, -bound, bound)
    return Stream.trusted(x.size, x.raw_indices, values, x.block, x.fill)
