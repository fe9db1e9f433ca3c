"""OneBitAdam: the first moment of Adam, one bit per value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ..quantize import Quantizer, Sign
from .compressed import Compressed
from .frozen_adam import EXP_AVG, FrozenAdam, residual_of, with_values
from .state import RESIDUAL, STEP, key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..communicator.communicator import Communicator
    from .base import Method
    from .gradients import Parameter
    from .state import State


@dataclass(frozen=True)
class OneBitAdam(FrozenAdam):
    """The sign of Adam's first moment with error feedback, after a first phase.

    In the second phase all ranks have the same first moment m:

        corrected m = beta1 m + (1 - beta1) (g + residual)
        m = mean over ranks of quantize(corrected m)
        update = lr m / denominator

    Signs are encoded twice: by the sender, and by the owner of a range of the sum, whose error
    is in its own residual. See `sparcml.aggregate.frozen_adam` for both phases.

    Args:
        quantize: Quantizer of the first moment.
        warm_up, steps, betas, eps, floor, first, algorithm, dense_below, seed, nonfinite: As
            for `FrozenAdam`.

    Reference: Tang et al.: 1-bit Adam: Communication Efficient Large-Scale Training with Adam's
    Convergence Speed, ICML 2021.
    """

    name: ClassVar[str] = "onebit_adam"
    number: ClassVar[int] = 6

    quantize: Quantizer = Sign(bucket=1024)  # noqa: RUF009  # frozen

    @classmethod
    def examples(cls) -> tuple[Method, ...]:
        """Return the instances that the tests run."""
        return (cls(warm_up=2, dense_below=100),)

    def second_phase(self) -> Compressed:
        """Return the method that compresses the first moment."""
        return Compressed(quantize=self.quantize, **self._common(2))

    def _exchange(
        self, comm: Communicator, parameters: Sequence[Parameter], state: State, new: State
    ) -> dict[str, Any]:
        inputs = []
        for p in parameters:
            self.check_finite(comm, p.name, p.values)
            m = self._moment(state, p, p.values + residual_of(state, p))
            inputs.append(with_values(p, m))
        means, after = self.second_phase()._step(comm, inputs, {STEP: state[STEP]})
        updates = {}
        for p in parameters:
            new[key(EXP_AVG, p.name)] = m = means[p.name]
            updates[p.name] = m * self._correction(new, p) * self._scale(state, new, p)
            share = m.dtype.type(1 - self.betas[0])
            new[key(RESIDUAL, p.name)] = after[key(RESIDUAL, p.name)] / share
        return updates
