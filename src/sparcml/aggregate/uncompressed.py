"""Gradients that are not compressed: the small ones, packed together, and sparse ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import buffer_pool
from ..stream import Stream, add
from .reduce import allreduce_streams, mean
from .state import RESIDUAL, load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..communicator.communicator import Communicator
    from .base import Method
    from .gradients import Parameter
    from .state import State


def mean_uncompressed(
    method: Method, comm: Communicator, parameters: Sequence[Parameter], state: State
) -> dict[str, Any]:
    """The exact means of gradients plus what is owed for them, which is paid by it."""
    if not parameters:
        return {}
    owed = [_owed(method, comm, parameter, state) for parameter in parameters]
    means: dict[str, Any] = {}
    fixed_nnz = all(parameter.stream is None for parameter in parameters)
    sums = allreduce_streams(comm, owed, fixed_nnz=fixed_nnz)
    for parameter, (total, _) in zip(parameters, sums, strict=True):
        if parameter.stream is None:
            means[parameter.name] = mean(total, comm.size, parameter.out)
        else:
            means[parameter.name] = _sparse(total, comm.size)
    return means


def _owed(method: Method, comm: Communicator, parameter: Parameter, state: State) -> Stream:
    gradient = parameter.stream
    if gradient is None:
        gradient = Stream.unchecked(parameter.size, None, parameter.values)
    residual = load(state, RESIDUAL, parameter)
    method.check_finite(comm, parameter.name, parameter.values)
    if residual is None or not residual.any():  # a sparse gradient stays sparse
        return gradient
    return add(Stream.unchecked(parameter.size, None, residual, gradient.block), gradient)


def _sparse(total: Stream, ranks: int) -> Stream:
    values = buffer_pool.empty(len(total.raw_values), total.dtype)
    np.divide(total.raw_values, total.dtype.type(ranks), out=values)
    return Stream.unchecked(
        total.size, total.raw_indices, values, total.block, scratch=True
    )
