"""Ways to combine the gradients of ranks: dense, torch's fp16, and methods of sparcml."""

from __future__ import annotations

import math
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Protocol

import numpy as np

from sparcml import Dense

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from sparcml import Method
    from sparcml.aggregate import State

    from .ranks import RankPool

    Arrays = dict[str, NDArray[np.float32]]


class Aggregator(Protocol):
    """Combines gradients and counts bytes.

    Attributes:
        parts: Number of parts of a batch, each with its own gradient.
        returns_update: Whether the result is subtracted from the weights as it is, instead
            of passed to the optimizer.
        bytes_sent: Bytes sent per rank since the start.
    """

    parts: int
    returns_update: bool

    @property
    def bytes_sent(self) -> float: ...  # noqa: D102

    def aggregate(self, gradients: Sequence[Arrays], lr: float) -> Arrays:
        """Return the mean gradient or the update; gradients may be overwritten."""


class Mean:
    """The mean gradient, computed in one go over the full batch.

    Bytes are those of a ring allreduce of float32 values.

    Args:
        ranks: World size.
    """

    parts = 1
    returns_update = False
    bytes_per_value = 4

    def __init__(self, ranks: int) -> None:
        self._ranks = ranks
        self.bytes_sent = 0.0

    def aggregate(self, gradients: Sequence[Arrays], lr: float) -> Arrays:
        """Return the mean gradient."""
        del lr
        values = sum(g.size for g in gradients[0].values())
        self.bytes_sent += ring_bytes(values, self._ranks, self.bytes_per_value)
        return gradients[0]


class LateMean(Mean):
    """The mean gradient of the previous step: a delay of one step, and nothing else.

    Error feedback delays a part of each gradient. This shows what a delay alone costs.
    """

    def __init__(self, ranks: int) -> None:
        super().__init__(ranks)
        self._previous: Arrays | None = None

    def aggregate(self, gradients: Sequence[Arrays], lr: float) -> Arrays:
        """Return the mean gradient of the previous step; zeros in the first."""
        current = {n: g.copy() for n, g in super().aggregate(gradients, lr).items()}
        previous, self._previous = self._previous, current
        if previous is None:
            return {n: np.zeros_like(g) for n, g in current.items()}
        return previous


class HalfMean(Mean):
    """The mean in half precision, as torch's fp16_compress_hook computes it.

    Each rank divides by the number of ranks and rounds; sums are rounded, too.
    """

    bytes_per_value = 2

    def __init__(self, ranks: int) -> None:
        super().__init__(ranks)
        self.parts = ranks

    def aggregate(self, gradients: Sequence[Arrays], lr: float) -> Arrays:
        """Return the mean gradient."""
        means = {}
        for name, first in super().aggregate(gradients, lr).items():
            total = np.zeros_like(first, np.float16)
            for gradient in gradients:
                total += gradient[name].astype(np.float16) / np.float16(self.parts)
            means[name] = total.astype(np.float32)
        return means


class Aggregated:
    """The result of a method of sparcml on thread ranks.

    Args:
        pool: Thread ranks.
        method: Aggregation method.
        parameters: Parameters by name, whose shapes the gradients have.
        leave: Pattern of the parameters that are not compressed.
    """

    def __init__(
        self, pool: RankPool, method: Method, parameters: Arrays, leave: str = ""
    ) -> None:
        self._pool, self._method = pool, method
        self.parts = pool.ranks
        self.returns_update = bool(getattr(method, "returns_update", False))
        self._left = {name for name in parameters if fnmatchcase(name, leave)}
        self.states = self._init(method, parameters.keys() - self._left, parameters)
        self._exact = self._init(Dense(), self._left, parameters)

    @property
    def bytes_sent(self) -> float:
        """Bytes sent per rank since the start, mean over ranks."""
        return self._pool.bytes_sent

    def aggregate(self, gradients: Sequence[Arrays], lr: float) -> Arrays:
        """Return the result of the method."""
        left = [{n: g for n, g in own.items() if n in self._left} for own in gradients]
        others = [
            {n: g for n, g in own.items() if n not in self._left} for own in gradients
        ]
        result, self.states = self._pool.aggregate(self._method, others, self.states, lr=lr)
        if self._left:
            means, self._exact = self._pool.aggregate(Dense(), left, self._exact)
            result |= means
        return result

    def _init(
        self, method: Method, names: Collection[str], parameters: Arrays
    ) -> list[State]:
        shapes = {name: a.shape for name, a in parameters.items() if name in names}
        return [method.init(shapes) for _ in range(self._pool.ranks)]


def ring_bytes(values: int, ranks: int, bytes_per_value: int = 4) -> float:
    """Return the bytes that a rank sends in a ring allreduce."""
    return 2 * (ranks - 1) / ranks * bytes_per_value * values


def clip(gradient: Arrays, limit: float | None) -> None:
    """Scale a gradient in place so that its norm over all parameters is at most `limit`."""
    if limit is None:
        return
    norm = math.sqrt(math.fsum(float(np.vdot(g, g)) for g in gradient.values()))
    if norm > limit:
        for g in gradient.values():
            np.multiply(g, np.float32(limit / norm), out=g)
