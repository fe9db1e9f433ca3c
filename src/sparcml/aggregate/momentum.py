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
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import buffer_pool, kernels
from .error_feedback import squared_norm
from .gradients import describe
from .state import key, load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..stream import Stream
    from ..stream.arrays import Values
    from .compressed import Compressed
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


def next_velocity(
    method: Compressed, p: Parameter, state: State, new: State
) -> kernels.Velocity:
    """Return the momentum of a parameter; the new one goes to the new state."""
    velocity = load_velocity(state, p, method.momentum, nesterov=method.nesterov)
    new[key(MOMENTUM, p.name)] = velocity.out
    return velocity


def add_to_means(
    method: Compressed,
    parameters: Sequence[Parameter],
    means: dict[str, Any],
    state: State,
    new: State,
) -> None:
    """Replace the means of parameters that are not compressed by those with momentum.

    Raises:
        TypeError: If a gradient is sparse.
    """
    for p in parameters:
        check_dense(type(method).__name__, p)
        velocity = next_velocity(method, p, state, new)
        means[p.name] = velocity.advance(means[p.name]).copy()  # not the state's


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


def clipped(
    parameters: Sequence[Parameter], clip: float | None, ranks: int
) -> Sequence[Parameter]:
    """Return this rank's gradients with a norm of at most clip / sqrt(ranks) over all."""
    if clip is None:
        return parameters
    total = math.fsum(squared_norm(p.values) for p in parameters)
    limit = clip / math.sqrt(ranks)
    # NaN and infinity are checked later, or propagated.
    if not 0 < total < math.inf or (factor := limit / math.sqrt(total)) >= 1:
        return parameters
    return [replace(p, values=p.values * p.values.dtype.type(factor)) for p in parameters]


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
