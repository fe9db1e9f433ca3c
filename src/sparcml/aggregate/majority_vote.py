"""MajorityVote: the ranks vote on the sign of each value, one bit per value each way."""

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
# The sums are encoded by their sign, which is the vote. A NaN affects its bucket only.
VOTE = Sign(bucket=8192, scale=1.0, nonfinite="propagate")


@dataclass(frozen=True)
class MajorityVote(Method):
    """signSGD with majority vote: +1 or -1 per value, the sign that most ranks have.

        m = momentum m + (1 - momentum) gradient
        result = sign(sum over ranks of sign(m))

    The sign of 0 and a tie count as +1. Each rank sends one bit per value to the owner of a
    range and receives one bit. The result is a direction and not a mean: choose the learning
    rate accordingly. There is no error feedback, so the method may not converge if gradients
    are noisy; `Compressed(quantize=Sign())` has error feedback.

    Args:
        momentum: Momentum of Signum; 0 votes with the sign of the gradient.
        nonfinite: "raise" or "propagate", see `Method`.

    Reference: Bernstein, Wang, Azizzadenesheli, Anandkumar: signSGD, ICML 2018.
    """

    name: ClassVar[str] = "majority_vote"
    number: ClassVar[int] = 4
    carried_state: ClassVar[tuple[str, ...]] = (MOMENTUM,)
    returns_mean: ClassVar[bool] = False

    momentum: float = 0.0
    nonfinite: str = "raise"

    @property
    def keeps_residual(self) -> bool:
        """Whether a residual reaches the mean: a vote ignores magnitudes."""
        return False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.momentum < 1:
            raise ValueError(
                f"MajorityVote: momentum must be in [0, 1), got {self.momentum}"
            )

    @classmethod
    def examples(cls) -> tuple[Method, ...]:
        """Return the instances that the tests run."""
        return (cls(), cls(momentum=0.9))

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
        if comm.size == 1:  # nothing was encoded
            results = [VOTE.decode(VOTE.encode(r)).astype(r.dtype) for r in results]
        return {p.name: r for p, r in zip(parameters, results, strict=True)}, new

    def _vote(self, comm: Communicator, p: Parameter, state: State, new: State) -> Stream:
        if p.stream is not None:
            raise TypeError(
                f"MajorityVote: {describe(p.name)} must be dense, got a sparse one; use Dense"
            )
        self.check_finite(comm, p.name, p.values)
        values = p.values
        if self.momentum:
            m = load(state, MOMENTUM, p)
            m = np.zeros_like(values) if m is None else m
            beta = values.dtype.type(self.momentum)
            values = beta * m + (1 - beta) * values
            new[key(MOMENTUM, p.name)] = values
        if values.dtype == np.float64:  # tiny values have no sign as float32
            values = np.where(values < 0, -1.0, np.where(np.isnan(values), values, 1.0))
        return Stream.unchecked(p.size, None, values)
