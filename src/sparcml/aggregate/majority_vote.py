"""MajorityVote: every rank votes for a direction, one bit a value, up and down."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..quantize import Sign
from ..stream import Stream
from .base import Method
from .gradients import describe
from .reduce import allreduce_streams
from .state import STEP, key, load, zeros

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..communicator.communicator import Communicator
    from .gradients import Parameter, Shape
    from .state import State

MOMENTUM = "momentum"
# Its sums are coded by their sign, which is the vote. A NaN spoils no more than a bucket.
VOTE = Sign(bucket=8192, scale=1.0)


@dataclass(frozen=True)
class MajorityVote(Method):
    """signSGD with majority vote: +1 or -1 for each value, as most ranks have it.

        m = momentum m + (1 - momentum) gradient
        result = sign(sum over ranks of sign(m))

    The sign of 0 and a tie count as +1. One bit a value goes to the owner of a range and one
    comes back. The result is a direction, no mean: choose the learning rate for it. There is
    no error feedback: a method that needs none of the magnitudes cannot owe any, so it may
    not converge where gradients are noisy; `Compressed(quantize=Sign())` is the form that does.

    Args:
        momentum: Of Signum; 0 votes for the gradient's own sign.
        nonfinite: "raise" or "propagate", see `Method`.

    Reference: Bernstein, Wang, Azizzadenesheli, Anandkumar: signSGD, ICML 2018.
    """

    momentum: float = 0.0
    nonfinite: str = "raise"
    carried_state: ClassVar[tuple[str, ...]] = (MOMENTUM,)

    @property
    def keeps_residual(self) -> bool:
        """A vote has no room for debts."""
        return False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.momentum < 1:
            raise ValueError(
                f"MajorityVote: momentum must be in [0, 1), got {self.momentum}"
            )

    def _begin(self, shapes: Mapping[str, Shape], state: State) -> None:
        for name, shape in shapes.items():
            if self.momentum:
                zeros(state, MOMENTUM, name, math.prod(shape))

    def _step(
        self, comm: Communicator, parameters: Sequence[Parameter], state: State
    ) -> tuple[dict[str, Any], State]:
        new: State = {STEP: state[STEP]}
        votes = [self._vote(comm, p, state, new) for p in parameters]
        pairs = allreduce_streams(
            comm, votes, quantize=VOTE, fixed_nnz=True, feedback=False
        )
        results = [total.to_dense() for total, _ in pairs]
        if comm.size == 1:  # nothing was coded
            results = [VOTE.decode(VOTE.encode(r)).astype(r.dtype) for r in results]
        return {p.name: r for p, r in zip(parameters, results, strict=True)}, new

    def _vote(self, comm: Communicator, p: Parameter, state: State, new: State) -> Stream:
        if p.stream is not None:
            raise TypeError(f"MajorityVote: {describe(p.name)} is sparse; it must be dense")
        self.check_finite(comm, p.name, p.values)
        values = p.values
        if self.momentum:
            m = load(state, MOMENTUM, p)
            m = np.zeros_like(values) if m is None else m
            beta = values.dtype.type(self.momentum)
            values = beta * m + (1 - beta) * values
            new[key(MOMENTUM, p.name)] = values
        if values.dtype == np.float64:  # what is tiny has no sign as a float32
            values = np.where(values < 0, -1.0, np.where(np.isnan(values), values, 1.0))
        return Stream.unchecked(p.size, None, values)
