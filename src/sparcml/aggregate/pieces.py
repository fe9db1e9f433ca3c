"""Mean of a long quantized vector, a piece at a time.

A sum, what this rank sees of it, and the messages all have the size of what is sent. Sending a
piece at a time bounds them, and keeps them in memory that the processor has just used.

A pass over memory costs as much as the arithmetic. `mean_in_two_passes` makes one before a piece
is sent and one after, where `mean_in_pieces` adds, counts, encodes, decodes, sums, divides and
subtracts one after the other. Both send the same messages and have the same result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..collectives import ALLREDUCES
from ..quantize.code import mix_seed
from ..quantize.qsgd import GridPasses, fuses
from .error_feedback import load_residual, select, select_all, update_residual
from .reduce import allreduce_streams, mean_dense
from .scaling import SharedScale
from .state import RESIDUAL, key

if TYPE_CHECKING:
    from ..communicator.communicator import Communicator
    from ..sparsify import Selection
    from ..stream.arrays import Values
    from .compressed import Compressed
    from .gradients import Parameter
    from .state import State

PIECE = 1 << 22  # values
TWO_PASSES = "ssar_allgather"  # the algorithm that has them


def is_long(method: Compressed, p: Parameter) -> bool:
    """Return whether a parameter is sent in pieces: only if each can be reduced alone."""
    return (
        p.size > PIECE
        and method.sparsify is None
        and method.quantize is not None
        and method.quantize.scale_rule is None
        and method.global_topk is None
        and (method.algorithm == "auto" or not ALLREDUCES[method.algorithm].lossy)
    )


def takes_two_passes(
    method: Compressed, comm: Communicator, p: Parameter, state: State
) -> bool:
    """Return whether a long parameter takes two passes over memory. Collective.

    Where the definitions of collectives run, as in a simulation, they run here too.
    """
    return (
        fuses(method.quantize)
        and p.values.dtype == np.float32
        and comm._session.compiled is not None
        and not method.momentum
        and method.error_feedback == (key(RESIDUAL, p.name) in state)
        and _algorithm(method, comm, p.values[:PIECE]) == TWO_PASSES
    )


def _algorithm(method: Compressed, comm: Communicator, piece: Values) -> str:
    if method.algorithm != "auto":
        return method.algorithm
    return comm._pin_algorithm(select_all(piece).sent, method.quantize)


def mean_in_two_passes(
    method: Compressed, comm: Communicator, p: Parameter, state: State, seed: int
) -> tuple[Values, Values | None]:
    """Return the mean of a long parameter over all ranks, and its residual. Collective.

    Args:
        method: The method; its quantizer encodes the values in flight.
        comm: The communicator.
        p: The parameter, for which `takes_two_passes` holds. The mean is written to its
            `out`, if there is one.
        state: State with the residual, which the new one replaces if `p` reuses it.
        seed: Random seed.
    """
    assert method.quantize is not None
    residual, scale = load_residual(state, p)
    corrected = residual if residual is None or p.reuses_state else np.empty_like(residual)
    out = np.empty_like(p.values) if p.out is None else p.out

    def check(finite: bool) -> None:
        method.check_finite(comm, p.name, p.values, 0.0 if finite else np.inf, residual)

    for index, start in enumerate(range(0, p.size, PIECE)):
        piece = slice(start, start + PIECE)
        gradient, mean, piece_seed = p.values[piece], out[piece], mix_seed(seed, index)
        old = None if residual is None else residual[piece]
        new = None if corrected is None else corrected[piece]
        if _algorithm(method, comm, gradient) != TWO_PASSES:  # the last piece is shorter
            part = select(None, old, gradient, scale=scale, out=new)
            check(bool(np.isfinite(part.squared_norm)))
            _reduce_piece(method, comm, part, SharedScale(None), mean, piece_seed)
            continue
        passes = GridPasses(method.quantize, gradient, old, scale, new, mean, check)
        part = select_all(gradient if new is None else new)
        pair = comm._sum_in_two_passes(
            part.sent,
            passes,
            method.quantize,
            piece_seed,
            wants_seen=method.error_feedback,
        )
        if pair is not None:
            total, seen = pair
            mean_dense(total, comm.size, mean)
            if method.error_feedback:
                update_residual(part, seen)
    return out, corrected


def mean_in_pieces(
    method: Compressed, comm: Communicator, p: Parameter, selection: Selection, seed: int
) -> Values:
    """Return the mean of a long parameter over all ranks. Collective.

    Args:
        method: The method; its quantizer encodes the values in flight.
        comm: The communicator.
        p: The parameter. The mean is written to its `out`, if there is one.
        selection: All values of this rank. With error feedback they become the residual.
        seed: Random seed.
    """
    assert method.quantize is not None
    corrected = selection.sent.raw_values
    out = np.empty_like(corrected) if p.out is None else p.out
    scale = SharedScale.agree(comm, [selection.sent], method.quantize)
    for index, start in enumerate(range(0, corrected.size, PIECE)):
        piece = slice(start, start + PIECE)
        part = select_all(corrected[piece])
        _reduce_piece(method, comm, part, scale, out[piece], mix_seed(seed, index))
    return out


def _reduce_piece(
    method: Compressed,
    comm: Communicator,
    part: Selection,
    scale: SharedScale,
    mean: Values,
    seed: int,
) -> None:
    """Write the mean of one piece, and turn its corrected gradient into the residual."""
    assert method.quantize is not None
    pairs = allreduce_streams(
        comm,
        scale.divide([part.sent]),
        quantize=method.quantize.for_fused(),
        algorithm=method.algorithm,
        fixed_nnz=True,
        feedback=method.error_feedback,
        seed=seed,
    )
    ((total, seen),) = scale.multiply(pairs)
    mean_dense(total, comm.size, mean)
    if method.error_feedback:
        update_residual(part, seen)
