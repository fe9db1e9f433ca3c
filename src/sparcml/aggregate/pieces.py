"""Mean of a long quantized vector, a piece at a time.

A sum, what this rank sees of it, and the messages all have the size of what is sent. Sending a
piece at a time bounds them, and keeps them in memory that the processor has just used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..collectives import ALLREDUCES
from ..quantize.code import mix_seed
from .error_feedback import select_all, update_residual
from .reduce import allreduce_streams, mean_dense
from .scaling import SharedScale

if TYPE_CHECKING:
    from ..communicator.communicator import Communicator
    from ..sparsify import Selection
    from ..stream.arrays import Values
    from .compressed import Compressed
    from .gradients import Parameter

PIECE = 1 << 22  # values


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
        pairs = allreduce_streams(
            comm,
            scale.divide([part.sent]),
            quantize=method.quantize.for_fused(),
            algorithm=method.algorithm,
            fixed_nnz=True,
            feedback=method.error_feedback,
            seed=mix_seed(seed, index),
        )
        ((total, seen),) = scale.multiply(pairs)
        mean_dense(total, comm.size, out[piece])
        if method.error_feedback:
            update_residual(part, seen)
    return out
