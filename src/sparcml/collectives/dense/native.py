"""The engine's own dense allreduce: the baseline, and the choice for dense vectors.

Rounds: up to the engine; estimated as 2 log2(P).
Bytes sent per rank: computed from the engine's algorithm (`costs/workload.py`), in most cases
2 (P - 1) / P times the dense vector. Nothing passes through our wire format.
Fan-in: up to the engine.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...costs.workload import RawCount, Round, Workload, native_nbytes
from ...stream import Stream, identity
from ..base import Algorithm, register

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...stream.arrays import Values
    from ..call import Call


def native(call: Call, x: Stream) -> Stream:
    """Return the dense result on all ranks, reduced in the engine's order."""
    values = call.densify(x).raw_values
    is_float = x.dtype.kind == "f"
    if is_float and call.op in ("min", "max"):
        # Engines compare floats as C does: a NaN is lost or not depending on the order, which
        # differs between ranks. Integers have one order.
        result = _from_ordered(call.native(_to_ordered(values, call.op)), values.dtype)
    else:
        result = call.native(values)
    with np.errstate(over="ignore", invalid="ignore"):
        has_nan = is_float and np.isnan(result.sum())  # or inf - inf; a cheap test
    if has_nan:
        result[np.isnan(result)] = np.nan  # the canonical one
    fill = identity(call.op, x.dtype)
    return Stream.unchecked(x.size, None, result, x.block, fill, scratch=True)


def _to_ordered(values: Values, op: str) -> NDArray[Any]:
    """Return integers in the order of the values: -0 below +0, and NaN where it wins."""
    bits = values.view(f"i{values.itemsize}")
    limits = np.iinfo(bits.dtype)
    ordered: NDArray[Any] = bits ^ ((bits >> (limits.bits - 1)) & limits.max)
    ordered[np.isnan(values)] = limits.min if op == "min" else limits.max
    return ordered


def _from_ordered(ordered: NDArray[Any], dtype: np.dtype[Any]) -> Values:
    limits = np.iinfo(ordered.dtype)
    values: Values = (ordered ^ ((ordered >> (limits.bits - 1)) & limits.max)).view(dtype)
    return values


def cost(rank: int, workload: Workload) -> list[Round]:
    """Return estimated rounds: halving, then doubling, with the bytes of the engine."""
    P, nodes = workload.ranks, workload.nodes
    algorithm = "ring" if nodes is None else nodes.native_algorithm
    nbytes = native_nbytes(algorithm, rank, P, workload.nbytes) / 2  # in each half
    rounds = (P - 1).bit_length()
    shares = [0.5 ** (i + 1) for i in range(rounds)]
    halving = []
    for i, share in enumerate(shares):
        part = share / sum(shares)
        sent = part * nbytes
        count = RawCount(math.floor(sent), sent, math.ceil(sent), 0)
        written = int(part * workload.blocks * (P - 1) / P)
        send = ((rank + (1 << i)) % P, (count,))
        halving.append(Round((send,), written=written, encoded=False))
    return [*halving, *halving[::-1]]


register(Algorithm("native", 6, native, cost, is_dense=True, is_native=True))
