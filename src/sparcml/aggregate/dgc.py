"""Deep Gradient Compression: sparse momentum SGD that behaves like the dense one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..sparsify import TopK
from .base import Method
from .compressed import Compressed
from .gradients import describe
from .reduce import squares_of
from .schedule import Schedule
from .state import key, load, zeros

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..communicator.communicator import Communicator
    from ..quantize import Quantizer
    from ..stream.stream import Values
    from .gradients import Parameter, Shape
    from .state import State

MOMENTUM = "momentum"


@dataclass(frozen=True)
class DGC(Method):
    """Top-k of a momentum that every rank keeps for itself.

        g = gradient, clipped to norm clip / sqrt(ranks) over all parameters
        u = momentum u + g;  v = v + u           (nesterov: u = momentum (u + g);  v = v + u + g)
        send the largest of v; where something was sent, v = 0 and u = 0
        mean = sum over ranks of what was sent / ranks

    The momentum is in the mean already: step with plain SGD, `w -= lr * mean`. Small and
    one-dimensional parameters get the momentum of the mean gradient. The residual is v.

    Args:
        ratio: Share of the values that is sent.
        momentum: Of the dense method it stands for.
        nesterov: Its form.
        clip: Norm over the whole gradient, as for one rank; each of P ranks gets
            clip / sqrt(P). None does not clip.
        masking: Whether momentum is dropped where something was sent (factor masking).
        warm_up: Steps in which the ratio falls from 1/4 to `ratio`.
        quantize: How values are coded on the way.
        dense_below: As for `Compressed`.
        nonfinite: "raise" or "propagate", see `Method`.

    Reference: Lin, Han, Mao, Wang, Dally: Deep Gradient Compression, ICLR 2018.
    """

    ratio: float = 0.001
    momentum: float = 0.9
    nesterov: bool = False
    clip: float | None = None
    masking: bool = True
    warm_up: int = 0
    quantize: Quantizer | None = None
    dense_below: int = 10_000
    nonfinite: str = "raise"
    carried_state: ClassVar[tuple[str, ...]] = (MOMENTUM,)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.momentum < 1:
            raise ValueError(f"DGC: momentum must be in [0, 1), got {self.momentum}")
        if self.clip is not None and not self.clip > 0:
            raise ValueError(f"DGC: clip must be positive or None, got {self.clip}")
        if self.warm_up < 0:
            raise ValueError(f"DGC: warm_up must be 0 steps or more, got {self.warm_up}")
        self._inner()  # refuses a bad ratio or quantizer here

    def _inner(self) -> Compressed:
        """What sends v: the same rules of what is small, and of what is seen."""
        sparsify = (
            Schedule.warm_up(self.ratio, self.warm_up) if self.warm_up else TopK(self.ratio)
        )
        return Compressed(
            sparsify,
            self.quantize,
            dense_below=self.dense_below,
            nonfinite=self.nonfinite,
        )

    def _begin(self, shapes: Mapping[str, Shape], state: State) -> None:
        self._inner()._begin(shapes, state)
        for name, shape in shapes.items():
            zeros(state, MOMENTUM, name, math.prod(shape))

    def _step(
        self, comm: Communicator, parameters: Sequence[Parameter], state: State
    ) -> tuple[dict[str, Any], State]:
        inner, factor = self._inner(), self._clipping(comm, parameters)
        velocity: dict[str, Values] = {}
        inputs = []
        for p in parameters:
            _check_dense(p)
            values = p.values if factor == 1 else p.values * p.values.dtype.type(factor)
            if inner.compresses(p):
                velocity[p.name], values = self._pushed(state, p, values)
            inputs.append(replace(p, values=values))
        means, new, sent = inner.run(comm, inputs, state)
        for p in inputs:
            if p.name not in sent:  # dense: the momentum of the mean
                velocity[p.name], means[p.name] = self._pushed(state, p, means[p.name])
            elif self.masking:
                velocity[p.name][sent[p.name].indices] = 0
            new[key(MOMENTUM, p.name)] = velocity[p.name]
        return means, new

    def _clipping(self, comm: Communicator, parameters: Sequence[Parameter]) -> float:
        """What this rank's gradients are multiplied with."""
        if self.clip is None:
            return 1.0
        squares = math.fsum(squares_of(p.values) for p in parameters)
        if not 0 < squares < math.inf:  # what is not finite is handed on, or said later
            return 1.0
        return min(1.0, self.clip / math.sqrt(comm.size) / math.sqrt(squares))

    def _pushed(self, state: State, p: Parameter, g: Values) -> tuple[Values, Values]:
        """The momentum after a gradient, and what it adds to what is owed."""
        u = load(state, MOMENTUM, p)
        u = np.zeros_like(g) if u is None else u
        m = g.dtype.type(self.momentum)
        if self.nesterov:
            pushed = m * (u + g)
            return pushed, pushed + g
        pushed = m * u + g
        return pushed, pushed


def _check_dense(p: Parameter) -> None:
    if p.stream is not None:
        raise TypeError(
            f"DGC keeps a momentum for every value, but {describe(p.name)} is sparse already: "
            f"aggregate it with Dense, which sends sparse gradients as they are"
        )
