"""TopKAdam: sparse updates of Adam."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ..sparsify import Sparsifier, TopK
from ..sparsify.base import parse_number
from .compressed import Compressed
from .frozen_adam import EXP_AVG, FrozenAdam, residual_of, with_values
from .state import RESIDUAL, STEP, key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..communicator.communicator import Communicator
    from ..quantize import Quantizer
    from ..stream.arrays import Values
    from .base import Method
    from .gradients import Parameter
    from .state import State


@dataclass(frozen=True)
class TopKAdam(FrozenAdam):
    """Top-k with error feedback of Adam's updates, after a first phase of quantized gradients.

    In the second phase each rank has a first moment m of its own gradients:

        m = beta1 m + (1 - beta1) g
        corrected update = lr m / denominator + lr residual / denominator
        sent = the largest entries of the corrected update
        update = sum over ranks of sent / ranks

    Score, residual and momentum are all in units of the update, and the denominator is the
    same on all ranks; see `sparcml.aggregate.frozen_adam`. Sparsified gradients under Adam
    lose accuracy, sparsified updates hardly do.

    Args:
        sparsify: Sparsifier of the updates.
        quantize: Quantizer of the values in flight.
        warm_up, steps, betas, eps, floor, first, algorithm, dense_below, seed, nonfinite: As
            for `FrozenAdam`.
    """

    name: ClassVar[str] = "topk_adam"
    number: ClassVar[int] = 5
    option: ClassVar[str] = "RATIO"

    sparsify: Sparsifier = TopK(0.01)  # noqa: RUF009  # frozen
    quantize: Quantizer | None = None

    @classmethod
    def from_option(cls, text: str) -> Self:
        """Return the method with this ratio and a first phase of 1,000 steps."""
        ratio = parse_number(cls.name, cls.option, text) if text else 0.01
        return cls(TopK(ratio))

    @classmethod
    def examples(cls) -> tuple[Method, ...]:
        """Return the instances that the tests run."""
        return (cls(TopK(0.02), warm_up=2, dense_below=100),)

    def second_phase(self) -> Compressed:
        """Return the method that compresses the updates."""
        return Compressed(self.sparsify, self.quantize, **self._common(2))

    def _exchange(
        self, comm: Communicator, parameters: Sequence[Parameter], state: State, new: State
    ) -> dict[str, Any]:
        inputs, scales = [], {}
        for p in parameters:
            self.check_finite(comm, p.name, p.values)
            new[key(EXP_AVG, p.name)] = m = self._moment(state, p, p.values)
            scales[p.name] = scale = self._scale(state, new, p)
            pending = residual_of(state, p) + m * self._correction(new, p)
            inputs.append(with_values(p, pending * scale))
        # The corrected update is complete, so the inner method starts without a residual.
        updates, after = self.second_phase()._step(comm, inputs, {STEP: state[STEP]})
        for p in parameters:
            residual: Values = after[key(RESIDUAL, p.name)]
            new[key(RESIDUAL, p.name)] = residual / scales[p.name]
        return updates
