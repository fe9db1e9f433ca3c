"""D2: D-PSGD without the bias that different data per rank cause."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ..base import Method
from ..requirements import require_doubly_stochastic, require_static, require_symmetric

if TYPE_CHECKING:
    from ...stream.arrays import Values
    from ..state import State
    from ..step import Step

CORRECTION = "correction"
LIMIT = -1 / 3  # of the smallest eigenvalue
TOLERANCE = 1e-9


@dataclass(frozen=True)
class D2(Method):
    """Decentralized training over decentralized data (D^2), also known as exact diffusion.

        x_1 = W (x_0 - lr g_0)
        x_(t+1) = W (2 x_t - x_(t-1) - lr_t g_t + lr_(t-1) g_(t-1))

    All ranks converge to the same optimum of the mean loss, however different their data are.
    Messages are as large as those of D-PSGD. With y_t = x_t - x_(t-1) + lr_(t-1) g_(t-1), y_0 = 0,
    the recursion reads

        h_i = x_i - lr g_i + y_i
        x_i <- sum_j W_ij h_j
        y_i <- y_i + x_i - h_i

    which stores one vector in place of two. y_i converges to lr g_i, so that the gradients of the
    ranks cancel; its mean is zero, so the mean of the models moves by the mean gradient.

    State: `correction`, y. A change of topology keeps it. A change of the world size drops it,
    since ranks get other data: it starts at zero again.

    Reference: Tang, Lian, Yan, Zhang, Liu: D^2: Decentralized Training over Decentralized Data,
    ICML 2018.

    Args:
        topology: Symmetric, doubly stochastic, the same in every step, with a smallest eigenvalue
            above -1/3. Otherwise differences grow; `topology.lazy()` has no negative
            eigenvalues. At -1/3, on rings of an even number of ranks, differences between
            even and odd ranks decay through the gradients alone, which warns.
    """

    name: ClassVar[str] = "d2"
    number: ClassVar[int] = 6
    kept_entries: ClassVar[tuple[str, ...]] = (CORRECTION,)

    def _check_topology(self) -> None:
        require_doubly_stochastic(self, self.topology)
        require_symmetric(self, self.topology)
        require_static(self, self.topology)
        smallest = self.topology.lambda_min
        if smallest < LIMIT - TOLERANCE:
            raise ValueError(
                f"D2: topology must have a smallest eigenvalue above -1/3, got "
                f"{smallest:.4g} of {self.topology.name}; use {self.topology.name}.lazy()"
            )
        if smallest <= LIMIT + TOLERANCE:
            warnings.warn(
                f"D2: the smallest eigenvalue of {self.topology.name} is -1/3, so that some "
                f"differences decay through the gradients alone; use "
                f"{self.topology.name}.lazy()",
                stacklevel=4,
            )

    def _step(self, call: Step, x: Values, g: Values, state: State) -> tuple[Values, State]:
        h = call.descend(x, g)
        if CORRECTION in state:
            h += state[CORRECTION]
        mixed = call.mix(h)
        correction = mixed - h
        if CORRECTION in state:
            correction += state[CORRECTION]
        return mixed, {**state, CORRECTION: correction}
