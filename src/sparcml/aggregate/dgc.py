"""Deep Gradient Compression: sparse momentum SGD that behaves like the dense one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ..sparsify import TopK
from ..sparsify.base import parse_number
from .base import Method
from .compressed import DENSE_BELOW, Compressed
from .error_feedback import squared_norm
from .gradients import describe
from .schedule import Schedule
from .state import key, load, zeros

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..communicator.communicator import Communicator
    from ..quantize import Quantizer
    from ..stream.arrays import Values
    from .gradients import Parameter, Shape
    from .state import State

MOMENTUM = "momentum"


@dataclass(frozen=True)
class DGC(Method):
    """Top-k with error feedback of a momentum that each rank keeps locally.

        g = gradient, clipped to norm clip / sqrt(ranks) over all parameters
        u = momentum u + g;  v = v + u           (nesterov: u = momentum (u + g);  v = v + u + g)
        send the largest entries of v and set them to 0 in v and in u
        mean = sum over ranks of sent / ranks

    The mean already contains the momentum: step with plain SGD, `w -= lr * mean`. Small and
    one-dimensional parameters get the momentum of their exact mean. The residual is v.

    Args:
        ratio: Fraction of the values to send.
        momentum: Momentum of the dense method.
        nesterov: Whether it is Nesterov's.
        clip: Maximum norm of the full gradient, as for one rank; each of P ranks clips to
            clip / sqrt(P). None does not clip.
        masking: Whether momentum is set to 0 where something was sent (factor masking).
        warm_up: Number of steps in which the ratio falls from 1/4 to `ratio`.
        quantize: Quantizer of the values in flight.
        dense_below: As for `Compressed`.
        nonfinite: "raise" or "propagate", see `Method`.

    Reference: Lin, Han, Mao, Wang, Dally: Deep Gradient Compression, ICLR 2018.
    """

    name: ClassVar[str] = "dgc"
    number: ClassVar[int] = 2
    option: ClassVar[str] = "RATIO"
    carried_state: ClassVar[tuple[str, ...]] = (MOMENTUM,)

    ratio: float = 0.001
    momentum: float = 0.9
    nesterov: bool = False
    clip: float | None = None
    masking: bool = True
    warm_up: int = 0
    quantize: Quantizer | None = None
    dense_below: int = DENSE_BELOW
    nonfinite: str = "raise"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.momentum < 1:
            raise ValueError(f"DGC: momentum must be in [0, 1), got {self.momentum}")
        if self.clip is not None and not self.clip > 0:
            raise ValueError(f"DGC: clip must be positive or None, got {self.clip}")
        if self.warm_up < 0:
            raise ValueError(f"DGC: warm_up must be at least 0, got {self.warm_up}")
        self._inner()  # checks the ratio and the quantizer

    @classmethod
    def from_option(cls, text: str) -> Self:
        """Return the method with this ratio."""
        return cls(ratio=parse_number(cls.name, cls.option, text)) if text else cls()

    @classmethod
    def examples(cls) -> tuple[Method, ...]:
        """Return the instances that the tests run."""
        return (cls(ratio=0.02, dense_below=100),)

    def compresses_shape(self, name: str, shape: Shape) -> bool:
        """Return whether dense gradients of this name and shape are compressed."""
        return self._inner().compresses_shape(name, shape)

    def _inner(self) -> Compressed:
        """Return the method that sends v."""
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
        inner, factor = self._inner(), self._clip_factor(comm, parameters)
        momentum: dict[str, Values] = {}
        inputs = []
        for p in parameters:
            _check_dense(p)
            values = p.values if factor == 1 else p.values * p.values.dtype.type(factor)
            if inner.compresses(p):
                momentum[p.name], values = self._add_momentum(state, p, values)
            inputs.append(replace(p, values=values))
        means, new, sent = inner.run(comm, inputs, state)
        for p in inputs:
            if p.name not in sent:  # not compressed: the momentum of the mean
                momentum[p.name], means[p.name] = self._add_momentum(
                    state, p, means[p.name]
                )
            elif self.masking:
                momentum[p.name][sent[p.name].indices] = 0
            new[key(MOMENTUM, p.name)] = momentum[p.name]
        return means, new

    def _clip_factor(self, comm: Communicator, parameters: Sequence[Parameter]) -> float:
        if self.clip is None:
            return 1.0
        total = math.fsum(squared_norm(p.values) for p in parameters)
        if not 0 < total < math.inf:  # NaN and infinity are checked later, or propagated
            return 1.0
        return min(1.0, self.clip / math.sqrt(comm.size) / math.sqrt(total))

    def _add_momentum(self, state: State, p: Parameter, g: Values) -> tuple[Values, Values]:
        """Return the new momentum u, and the term to add to v."""
        u = load(state, MOMENTUM, p)
        u = np.zeros_like(g) if u is None else u
        m = g.dtype.type(self.momentum)
        if self.nesterov:
            u = m * (u + g)
            return u, u + g
        u = m * u + g
        return u, u


def _check_dense(p: Parameter) -> None:
    if p.stream is not None:
        raise TypeError(
            f"DGC: {describe(p.name)} must be dense, since DGC keeps a momentum for every "
            f"value, got a sparse one; use Dense, which sends sparse gradients as they are"
        )
