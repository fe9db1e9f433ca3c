"""Whole steps of the methods of aggregation: one rank alone, and two ranks as threads.

Alone nothing travels, so nothing is coded: that is what other tools' hooks are compared with.
Two ranks hold the same gradient, so that their mean is known.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

import sparcml
from compressors.case import Case, Outcome
from compressors.ours import label
from sparcml.transport import ThreadGroup, ThreadTransport

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[Any]

PATIENCE = 120.0  # seconds


def cases(x: Floats) -> Iterator[Case]:
    """All methods, alone and in pairs."""
    for method in (
        sparcml.Dense(),
        sparcml.Compressed(sparcml.TopK(0.01)),
        sparcml.Compressed(sparcml.TopK(k=4, bucket=512), sparcml.QSGD(bits=4)),
        sparcml.Compressed(quantize=sparcml.QSGD(bits=4), error_feedback=False),
        sparcml.Compressed(quantize=sparcml.OneBit()),
        sparcml.DGC(ratio=0.001),
        sparcml.PowerSGD(rank=4),
        sparcml.MajorityVote(),
    ):
        for ranks in (1, 2):
            yield _step(method, x, ranks)


class _Ranks:
    """Ranks that all make one step when told to; the first is the caller."""

    def __init__(self, method: sparcml.Method, matrix: Floats, ranks: int) -> None:
        team = ThreadGroup(ranks)
        self._comms = [
            sparcml.Communicator(ThreadTransport(team, rank, PATIENCE))
            for rank in range(ranks)
        ]
        self._method, self._matrix = method, matrix
        self._states = [method.init(matrix.shape) for _ in range(ranks)]
        self._pool = ThreadPoolExecutor(ranks)

    def step(self) -> Floats:
        others = [self._pool.submit(self._one, r) for r in range(1, len(self._comms))]
        mean = self._one(0)
        for other in others:
            other.result()
        return mean

    def _one(self, rank: int) -> Floats:
        mean, self._states[rank] = self._method.aggregate(
            self._comms[rank], self._matrix, self._states[rank]
        )
        return np.asarray(mean)

    def sent(self) -> int:
        """Bytes of the first rank so far."""
        return self._comms[0].stats.bytes


def _step(method: sparcml.Method, x: Floats, ranks: int) -> Case:
    matrix = as_matrix(x)
    team = _Ranks(method, matrix, ranks)

    def outcome() -> Outcome:
        fresh = _Ranks(method, matrix, ranks)
        mean = fresh.step()
        sent = fresh.sent() or None  # the engine's own sum is not counted
        wrong = abs(mean.size - matrix.size)
        if isinstance(method, sparcml.MajorityVote):  # a direction, no estimate of x
            return Outcome(None, sent, wrong)
        return Outcome(padded(mean, x), sent, wrong)

    return Case(label(method), "step" if ranks == 1 else "step 2", team.step, outcome)


def as_matrix(x: Floats) -> Floats:
    """The vector as a matrix that is nearly square, as PowerSGD wants it."""
    rows = math.isqrt(x.size)
    return x[: rows * (x.size // rows)].reshape(rows, -1)


def padded(mean: Floats, x: Floats) -> Floats:
    """A step's result, with the few values that its matrix had no room for."""
    flat = np.asarray(mean).reshape(-1)
    return np.concatenate([flat, x[flat.size :]])
