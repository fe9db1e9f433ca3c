"""Error feedback: where the residual is updated.

    corrected gradient = residual + gradient
    sent = sparsify(corrected gradient)
    residual = corrected gradient - seen

If the learning rate changes, the residual is first multiplied by old / new (`load_residual`):
learning rate x residual, by which the weights still have to move, stays the same.

`seen` is this rank's contribution to the result, as the other ranks received it. Entries that
the sparsifier left out, quantization errors, and entries that gTop-k or a lossy allreduce dropped
after sending are therefore all in the residual: the applied means plus the mean of the residuals
equal the mean of the gradients. Methods use `update_residual`, or kernels that subtract the same
in a pass that they make anyway (`PowerSGD`, `mean_in_two_passes`).

Reference: Stich, Cordonnier, Jaggi: Sparsified SGD with Memory, NeurIPS 2018.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import buffer_pool, kernels
from ..sparsify import Selection
from ..sparsify.vector import Host
from ..stream import Stream
from ..stream.reduction import difference
from .state import RATE, RESIDUAL, key, load

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..sparsify import Sparsifier
    from ..stream.arrays import Values
    from .gradients import Parameter
    from .state import State
SPARSIFIER_STATE = "memory"  # saved states have this name


def load_residual(state: State, parameter: Parameter) -> tuple[Values | None, float]:
    """Return the residual of a parameter, and its factor for this step's learning rate."""
    residual = load(state, RESIDUAL, parameter)
    old = state.get(key(RATE, parameter.name))
    if old is None or not parameter.lr:
        return residual, 1.0
    return residual, float(old) / parameter.lr


def scaled_residual(state: State, parameter: Parameter) -> Values | None:
    """Return the residual of a parameter in units of this step's learning rate."""
    residual, scale = load_residual(state, parameter)
    if residual is None or scale == 1:
        return residual
    scaled: Values = residual * residual.dtype.type(scale)
    return scaled


def select(
    sparsifier: Sparsifier | None,
    residual: Values | None,
    gradient: Values,
    *,
    scale: float = 1.0,
    seed: int = 0,
    carried: NDArray[np.float64] | None = None,
    velocity: kernels.Velocity | None = None,
    out: Values | None = None,
) -> Selection:
    """Select what to send from the corrected gradient.

    Args:
        sparsifier: Selects the entries; None selects all of them.
        residual: None without error feedback; the residual of the selection is then not used.
        gradient: The new gradient.
        scale: Factor of the residual.
        seed: Random seed.
        carried: State of the sparsifier, updated in place.
        velocity: Momentum whose term replaces the gradient; its `out` is written.
        out: Array of the new residual, which may be `residual`; a new one by default.

    Returns:
        The selection. If all entries are selected, its residual is the array of the values
        to send.
    """
    if residual is None:
        gradient = gradient if velocity is None else velocity.advance(gradient)
        norm = squared_norm(gradient)
        if sparsifier is None:
            return Selection(_dense(gradient), gradient, norm)
        carried = sparsifier.initial_state() if carried is None else carried
        return Selection(
            sparsifier.select_from(Host(gradient), seed, carried), gradient, norm
        )
    if sparsifier is not None:
        return sparsifier.select_with_residual(
            residual,
            gradient,
            seed=seed,
            state=carried,
            out=out,
            scale=scale,
            velocity=velocity,
        )
    corrected = buffer_pool.empty(gradient.size, gradient.dtype) if out is None else out
    norm = kernels.add_residual(residual, gradient, corrected, scale, velocity)
    return select_all(corrected, norm)


def select_all(corrected: Values, norm: float = 0.0) -> Selection:
    """Return a selection of every entry of the corrected gradient, which it then owns."""
    return Selection(_dense(corrected), corrected, norm)


def sparsifier_state(
    sparsifier: Sparsifier | None, name: str, state: State, new: State
) -> NDArray[np.float64] | None:
    """Return the sparsifier's state of a parameter: a copy in the new state, to be updated."""
    if sparsifier is None or not (initial := sparsifier.initial_state()).size:
        return None
    entry = key(SPARSIFIER_STATE, name)
    new[entry] = carried = np.array(state.get(entry, initial), np.float64)
    return carried


def update_residual(selection: Selection, seen: Stream) -> Values:
    """Return the corrected gradient minus `seen`.

    The result is the array of the selection's residual, updated in place.

    Args:
        selection: What was selected from the corrected gradient, and what was not.
        seen: This rank's contribution to the result as the other ranks received it; the
            very stream that was sent if nothing was lost.
    """
    sent, residual = selection.sent, selection.residual
    if residual is sent.raw_values:  # all was sent: this is the corrected gradient
        if seen is sent:
            residual.fill(0)
        elif seen.raw_indices is None:
            np.subtract(residual, seen.raw_values, out=residual)
        else:
            kernels.scatter("sum", residual, seen.raw_indices, -seen.raw_values, seen.block)
        return residual
    if seen is not sent:
        lost = difference(sent, seen)
        if lost.raw_indices is None:
            np.add(residual, lost.raw_values, out=residual)
        else:
            kernels.scatter("sum", residual, lost.raw_indices, lost.raw_values, lost.block)
    return residual


def return_to_residual(state: State, name: str, mean: Values) -> None:
    """Add a mean that was not applied back to the residual of this rank, if it has one."""
    entry = key(RESIDUAL, name)
    if entry in state:
        state[entry] = state[entry] + mean


def squared_norm(values: Values) -> float:
    """Return the sum of squares in double precision; of float32 values it cannot overflow."""
    return (
        float(kernels.block_squared_norms(values, values.size)[0]) if values.size else 0.0
    )


def _dense(values: Values) -> Stream:
    return Stream.unchecked(values.size, None, values)
