"""Deep Gradient Compression: sparse momentum SGD that behaves like the dense one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ..sparsify import TopK
from ..sparsify.base import parse_number
from .base import Method
from .compressed import DENSE_BELOW, Compressed
from .momentum import MOMENTUM

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..communicator.communicator import Communicator
    from ..quantize import Quantizer
    from .gradients import Parameter, Shape
    from .state import State


@dataclass(frozen=True)
class DGC(Method):
    """Top-k with error feedback of a momentum that each rank keeps locally.

        g = gradient, clipped to norm clip / sqrt(ranks) over all parameters
        u = momentum u + g;  v = v + u           (nesterov: u = momentum (u + g);  v = v + u + g)
        send the largest entries of v and set them to 0 in v and in u
        mean = sum over ranks of sent / ranks

    The mean already contains the momentum: step with plain SGD, `w -= lr * mean`. Small and
    one-dimensional parameters get the momentum of their exact mean. The residual is v. It is
    `Compressed` with a masked momentum.

    Masking discards up to 1 - m of what dense momentum makes of a gradient (see
    `sparcml.aggregate.momentum`), most of it where entries are sent often. The best learning
    rate is therefore between that of dense SGD and, for a momentum of 0.9, six times as much.

    Args:
        ratio: Fraction of the values to send.
        momentum: Momentum of the dense method.
        nesterov: Whether it is Nesterov's.
        clip: Maximum norm of the full gradient, as for one rank; each of P ranks clips to
            clip / sqrt(P). None does not clip.
        masking: Whether momentum is set to 0 where something was sent (factor masking).
        warm_up: Number of steps in which the ratio falls from 1/4 to `ratio`, or a fraction of
            `steps`.
        steps: Number of steps of the full run, for a `warm_up` below 1.
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
    warm_up: float = 0
    steps: int | None = None
    quantize: Quantizer | None = None
    dense_below: int = DENSE_BELOW
    nonfinite: str = "raise"

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            self._inner()
        except ValueError as error:
            raise ValueError(str(error).replace("Compressed", "DGC")) from None

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
        """Return the method as an instance of `Compressed`."""
        return Compressed(
            TopK(self.ratio),
            self.quantize,
            momentum=self.momentum,
            nesterov=self.nesterov,
            masking=self.masking and self.momentum > 0,
            warm_up=self.warm_up,
            steps=self.steps,
            clip=self.clip,
            dense_below=self.dense_below,
            nonfinite=self.nonfinite,
        )

    def _begin(self, shapes: Mapping[str, Shape], state: State) -> None:
        self._inner()._begin(shapes, state)

    def _step(
        self, comm: Communicator, parameters: Sequence[Parameter], state: State
    ) -> tuple[dict[str, Any], State]:
        return self._inner()._step(comm, parameters, state)
