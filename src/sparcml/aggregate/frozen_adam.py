"""FrozenAdam: Adam that compresses updates, after a first phase that compresses gradients.

The second moment of Adam is a mean of squares. If a gradient arrives as n g every n steps instead
of as g in each, the first moment stays the same on average and the second grows n-fold: steps
shrink by sqrt(n). Sparsified gradients are therefore harmful under Adam. The methods here run in
two phases, for each parameter:

1. For `warm_up` steps, gradients are averaged with a mild quantizer, and Adam is as usual.
2. Then v = exp_avg_sq is frozen, which makes the update linear in the gradients:

       m = beta1 m + (1 - beta1) g
       update = lr m / denominator,   denominator = sqrt(max(v, floor mean(v))) + eps

   and what is compressed, with error feedback, is the update or m. Entries of v that were almost
   never reached in the first phase would give huge updates, hence the floor.

The residual is kept in units of gradients (update = lr residual / denominator), so that other
methods can take it over. Parameters that are not compressed keep the usual Adam.

References: Tang et al.: 1-bit Adam, ICML 2021, for the frozen moment.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..quantize import QSGD, Quantizer
from ..quantize.code import mix_seed
from .base import Method
from .compressed import DENSE_BELOW, Compressed
from .error_feedback import scaled_residual
from .schedule import check_warm_up, warm_up_steps
from .state import RESIDUAL, STEP, key, load, name_of, zeros

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..communicator.communicator import Communicator
    from ..stream.arrays import Values
    from .gradients import Parameter, Shape
    from .state import State

EXP_AVG, EXP_AVG_SQ = "exp_avg", "exp_avg_sq"  # as torch.optim.Adam names them
DENOMINATOR, ADAM_STEP = "denominator", "adam_step"
WARM_UP_FRACTION, WARM_UP_STEPS = 0.15, 1000  # of the first phase


@dataclass(frozen=True, kw_only=True)
class FrozenAdam(Method):
    """Base class of methods that freeze Adam's second moment and compress updates.

    `aggregate(comm, gradient, state, lr=lr)` returns updates, the same on all ranks:
    `w -= lr * weight_decay * w + update`. Without `lr` the updates are those of a learning rate
    of 1.

    Args:
        warm_up: Number of steps of the first phase, or a fraction of `steps`. Default: 15 % of
            `steps`, or 1,000 steps if `steps` is None.
        steps: Number of steps of the full run, for a `warm_up` that is a fraction of it.
        betas: Decay of the first and the second moment.
        eps: Term of the denominator.
        floor: Minimum of the frozen second moment, as a fraction of its mean over the
            parameter.
        first: Quantizer of the gradients in the first phase; None sends them as they are.
        algorithm: Allreduce algorithm, as for `comm.allreduce`.
        dense_below: As for `Compressed`.
        seed: Random seed.
        nonfinite: "raise" or "propagate", see `Method`.
    """

    returns_update: ClassVar[bool] = True
    returns_mean: ClassVar[bool] = False
    carried_state: ClassVar[tuple[str, ...]] = (EXP_AVG, EXP_AVG_SQ, DENOMINATOR, ADAM_STEP)

    warm_up: float | None = None
    steps: int | None = None
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    floor: float = 0.01
    first: Quantizer | None = QSGD(bits=4)  # noqa: RUF009  # frozen
    algorithm: str = "auto"
    dense_below: int = DENSE_BELOW
    seed: int = 0
    nonfinite: str = "raise"

    def __post_init__(self) -> None:
        super().__post_init__()
        name = type(self).__name__
        check_warm_up(name, self._warm_up, self.steps)
        if self.freeze_step < 1:
            raise ValueError(f"{name}: warm_up must be at least 1 step, got {self.warm_up}")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(
                f"{name}: betas must be two numbers in [0, 1), got {self.betas}"
            )
        if not self.eps > 0 or not self.floor >= 0:
            raise ValueError(
                f"{name}: eps must be positive and floor at least 0, got {self.eps} and "
                f"{self.floor}"
            )
        self.first_phase()
        self.second_phase()

    @property
    def freeze_step(self) -> int:
        """Number of steps of the first phase."""
        return warm_up_steps(self._warm_up, self.steps)

    @property
    def _warm_up(self) -> float:
        if self.warm_up is not None:
            return self.warm_up
        return WARM_UP_STEPS if self.steps is None else WARM_UP_FRACTION

    def compresses_shape(self, name: str, shape: Shape) -> bool:
        """Return whether dense gradients of this name and shape are compressed."""
        return self.second_phase().compresses_shape(name, shape)

    def for_gradients(self) -> Compressed:
        """Return the method of the first phase, in which an optimizer makes the step."""
        return self.first_phase()

    def first_phase(self) -> Compressed:
        """Return the method that averages gradients in the first phase."""
        return Compressed(quantize=self.first, **self._common(1))

    @abstractmethod
    def second_phase(self) -> Compressed:
        """Return the method that compresses in the second phase."""

    @abstractmethod
    def _exchange(
        self, comm: Communicator, parameters: Sequence[Parameter], state: State, new: State
    ) -> dict[str, Values]:
        """Return the updates of parameters in the second phase, and add to the new state."""

    def _common(self, phase: int) -> dict[str, Any]:
        """Return the settings of a phase.

        In one step some parameters may be in one phase and others in the other, hence the seeds.
        """
        return {
            "algorithm": self.algorithm,
            "dense_below": self.dense_below,
            "seed": self.seed if phase == 1 else mix_seed(self.seed, phase),
            "nonfinite": self.nonfinite,
        }

    def _begin(self, shapes: Mapping[str, Shape], state: State) -> None:
        for name, shape in shapes.items():
            size = math.prod(shape)
            zeros(state, EXP_AVG, name, size)
            if key(DENOMINATOR, name) not in state:
                zeros(state, EXP_AVG_SQ, name, size)
            if self.compresses_shape(name, shape):
                zeros(state, RESIDUAL, name, size)
            state.setdefault(key(ADAM_STEP, name), np.array(0, np.int64))

    def is_frozen(self, state: State, name: str) -> bool:
        """Return whether a parameter is in the second phase."""
        return int(state.get(key(ADAM_STEP, name), 0)) >= self.freeze_step

    def _step(
        self, comm: Communicator, parameters: Sequence[Parameter], state: State
    ) -> tuple[dict[str, Any], State]:
        parameters = [replace(p, lr=1.0) if p.lr is None else p for p in parameters]
        large = self.second_phase().compresses
        frozen = [p for p in parameters if large(p) and self.is_frozen(state, p.name)]
        names = {p.name for p in frozen}
        others = [p for p in parameters if p.name not in names]
        new: State = {STEP: state[STEP]}
        updates: dict[str, Any] = {}
        for p in parameters:
            made = state.get(key(ADAM_STEP, p.name), np.array(0, np.int64))
            new[key(ADAM_STEP, p.name)] = np.asarray(made + 1)
        if others:
            means, after = self.first_phase()._step(comm, others, state)
            new |= after
            for p in others:
                updates[p.name] = self._adam(state, new, p, means[p.name])
        if moving := [p for p in frozen if p.lr]:
            updates |= self._exchange(comm, moving, state, new)
        for p in frozen:
            if not p.lr:  # nothing moves, and nothing is to be sent
                updates[p.name] = np.zeros_like(p.values)
                new |= {
                    k: v for k, v in state.items() if name_of(k) == p.name and k not in new
                }
        return updates, new

    def _adam(self, state: State, new: State, p: Parameter, g: Values) -> Values:
        """Return the usual update of a parameter from its mean gradient."""
        assert p.lr is not None
        t = int(new[key(ADAM_STEP, p.name)])
        m, v = _moment_of(state, EXP_AVG, p), _moment_of(state, EXP_AVG_SQ, p)
        one, two = (g.dtype.type(beta) for beta in self.betas)
        new[key(EXP_AVG, p.name)] = m = one * m + (1 - one) * g
        new[key(EXP_AVG_SQ, p.name)] = v = two * v + (1 - two) * (g * g)
        denominator = np.sqrt(v * g.dtype.type(1 / (1 - self.betas[1] ** t)))
        denominator += g.dtype.type(self.eps)
        if t == self.freeze_step and self.second_phase().compresses(p):
            del new[key(EXP_AVG_SQ, p.name)]
            new[key(DENOMINATOR, p.name)] = self.frozen_denominator(v, t)
        update: Values = m * g.dtype.type(p.lr / (1 - self.betas[0] ** t)) / denominator
        return update

    def frozen_denominator(self, v: Values, t: int) -> Values:
        """Return the denominator of the second phase.

        Args:
            v: Second moment of a parameter after the first phase.
            t: Number of steps that it is a mean of.
        """
        unbiased = v * v.dtype.type(1 / (1 - self.betas[1] ** t))
        mean = float(unbiased.sum(dtype=np.float64)) / max(1, v.size)
        lowest = v.dtype.type(self.floor * mean)
        root: Values = np.sqrt(np.maximum(unbiased, lowest))
        root += v.dtype.type(self.eps)
        return root

    def second_moment(self, denominator: Values, t: int) -> Values:
        """Return the second moment with which Adam has a denominator after `t` steps.

        Adam corrects the bias of `t` steps, while the frozen moment is older and has a floor.
        """
        root = denominator - denominator.dtype.type(self.eps)
        moment: Values = root * root * denominator.dtype.type(1 - self.betas[1] ** t)
        return moment

    def _moment(self, state: State, p: Parameter, g: Values) -> Values:
        """Return the first moment with a new gradient."""
        m, beta = _moment_of(state, EXP_AVG, p), g.dtype.type(self.betas[0])
        moment: Values = beta * m + (1 - beta) * g
        return moment

    def _correction(self, new: State, p: Parameter) -> Any:
        """Return the factor that corrects the bias of the first moment."""
        t = int(new[key(ADAM_STEP, p.name)])
        return p.values.dtype.type(1 / (1 - self.betas[0] ** t))

    def _scale(self, state: State, new: State, p: Parameter) -> Values:
        """Return lr / denominator; the denominator stays in the new state."""
        denominator = load(state, DENOMINATOR, p)
        assert denominator is not None
        new[key(DENOMINATOR, p.name)] = state[key(DENOMINATOR, p.name)]
        scale: Values = p.values.dtype.type(p.lr) / denominator
        return scale


def _moment_of(state: State, entry: str, p: Parameter) -> Values:
    moment = load(state, entry, p)
    return np.zeros_like(p.values) if moment is None else moment


def with_values(p: Parameter, values: Values) -> Parameter:
    """Return a parameter with other values in place of the gradient, without a rate."""
    return replace(p, values=values, out=None, lr=None)


def residual_of(state: State, p: Parameter) -> Values:
    """Return the residual of a parameter in units of gradients."""
    residual = scaled_residual(state, p)
    return np.zeros_like(p.values) if residual is None else residual
