"""Mean of a long quantized vector, a piece at a time.

A sum, what this rank sees of it, and the messages all have the size of what is sent. Sending a
piece at a time bounds them, and keeps them in memory that the processor has just used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..quantize.code import mix_seed
from ..stream import Stream
from .error_feedback import select_all, update_residual
from .reduce import allreduce_streams, mean_dense
from .scaling import SharedScale

if TYPE_CHECKING:
    from ..communicator.communicator import Communicator
    from ..quantize import Quantizer
    from ..stream.arrays import Values

PIECE = 1 << 22  # values


def mean_in_pieces(
    comm: Communicator,
    corrected: Values,
    out: Values,
    *,
    quantize: Quantizer,
    algorithm: str,
    feedback: bool,
    seed: int,
) -> None:
    """Write the mean over all ranks to `out`. Collective.

    Args:
        comm: The communicator.
        corrected: The values of this rank. With feedback they become the residual.
        out: Array of the mean; without feedback it may be `corrected`.
        quantize: Quantizer of the values in flight.
        algorithm: Allreduce algorithm, as for `comm.allreduce`.
        feedback: Whether to subtract what was seen.
        seed: Random seed.
    """
    whole = Stream.unchecked(corrected.size, None, corrected)
    scale = SharedScale.agree(comm, [whole], quantize)
    for index, start in enumerate(range(0, corrected.size, PIECE)):
        piece = slice(start, start + PIECE)
        selection = select_all(corrected[piece])
        pairs = allreduce_streams(
            comm,
            scale.divide([selection.sent]),
            quantize=quantize.for_fused(),
            algorithm=algorithm,
            fixed_nnz=True,
            feedback=feedback,
            seed=mix_seed(seed, index),
        )
        ((total, seen),) = scale.multiply(pairs)
        mean_dense(total, comm.size, out[piece])
        if feedback:
            update_residual(selection, seen)
