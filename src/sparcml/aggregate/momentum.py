"""Momentum before the selection: each rank adds it to its own gradients.

    u = momentum u + g;  term = u                (nesterov: u = momentum (u + g);  term = u + g)
    corrected gradient = residual + term

With error feedback the weights minus the learning rate times the mean residual are exactly those
of the dense method. Momentum of the optimizer acts after the sum instead; use one of the two.

Factor masking sets u to zero where something was sent. Of a gradient that is sent every n steps
it keeps 1 - m (1 - m^n) / (n (1 - m)) of what dense momentum makes of it: a tenth for n = 1 and
m = 0.9. Masked momentum therefore needs a larger learning rate than the dense method.

Reference: Lin, Han, Mao, Wang, Dally: Deep Gradient Compression, ICLR 2018.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .. import buffer_pool, kernels
from .error_feedback import squared_norm
from .gradients import describe
from .state import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..stream import Stream
    from ..stream.arrays import Values
    from .gradients import Parameter
    from .state import State

MOMENTUM = "momentum"


def load_velocity(
    state: State, p: Parameter, momentum: float, *, nesterov: bool
) -> kernels.Velocity:
    """Return the momentum of a parameter, with an array for the momentum after the step."""
    u = load(state, MOMENTUM, p)
    u = np.zeros_like(p.values) if u is None else u
    out = u if p.reuses_state else buffer_pool.empty(u.size, u.dtype)
    return kernels.Velocity(u, out, momentum, nesterov)


def clear(u: Values, sent: Stream) -> None:
    """Set the momentum to 0 where something was sent (factor masking)."""
    if sent.raw_indices is None:
        u.fill(0)
    else:
        zeros = np.zeros_like(sent.raw_values)
        kernels.scatter_assign(u, sent.raw_indices, zeros, sent.block)


def kept_share(momentum: float, steps: int) -> float:
    """Return the part of dense momentum's effect that factor masking keeps.

    Args:
        momentum: Momentum.
        steps: Number of steps between two selections of the same entry.
    """
    m, n = momentum, steps
    return 1 - m * (1 - m**n) / (n * (1 - m))


def clip_factor(parameters: Sequence[Parameter], clip: float | None, ranks: int) -> float:
    """Return the factor that limits the norm of this rank's gradient to clip / sqrt(ranks)."""
    if clip is None:
        return 1.0
    total = math.fsum(squared_norm(p.values) for p in parameters)
    if not 0 < total < math.inf:  # NaN and infinity are checked later, or propagated
        return 1.0
    return min(1.0, clip / math.sqrt(ranks) / math.sqrt(total))


def check_momentum(function: str, momentum: float, clip: float | None) -> None:
    """Raise a ValueError unless both settings are valid."""
    if not 0 <= momentum < 1:
        raise ValueError(f"{function}: momentum must be in [0, 1), got {momentum}")
    if clip is not None and not clip > 0:
        raise ValueError(f"{function}: clip must be positive or None, got {clip}")


def check_dense(function: str, p: Parameter) -> None:
    """Raise a TypeError for a sparse gradient."""
    if p.stream is not None:
        raise TypeError(
            f"{function}: {describe(p.name)} must be dense, since momentum is kept for every "
            f"value, got a sparse one; use Dense, which sends sparse gradients as they are"
        )
