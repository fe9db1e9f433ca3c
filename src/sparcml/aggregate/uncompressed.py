"""Means of gradients that no sparsifier selects from: small ones and sparse ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..stream import Stream, add
from .error_feedback import scaled_residual
from .reduce import allreduce_streams, mean_dense, mean_stream
from .scaling import allreduce_scaled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..communicator.communicator import Communicator
    from ..quantize import Quantizer
    from .base import Method
    from .gradients import Parameter
    from .state import State


def mean_uncompressed(
    method: Method, comm: Communicator, parameters: Sequence[Parameter], state: State
) -> dict[str, Any]:
    """Return the exact means of the corrected gradients by name. Collective.

    All of a residual is sent, so the caller drops it from the state.
    """
    if not parameters:
        return {}
    streams = [_corrected(method, comm, parameter, state) for parameter in parameters]
    fixed_nnz = all(parameter.stream is None for parameter in parameters)
    pairs = allreduce_streams(comm, streams, fixed_nnz=fixed_nnz)
    means: dict[str, Any] = {}
    for parameter, (total, _) in zip(parameters, pairs, strict=True):
        if parameter.stream is None:
            means[parameter.name] = mean_dense(total, comm.size, parameter.out)
        else:
            means[parameter.name] = mean_stream(total, comm.size)
    return means


def mean_quantized(
    method: Method,
    comm: Communicator,
    parameters: Sequence[Parameter],
    state: State,
    quantize: Quantizer,
    seed: int,
) -> dict[str, Any]:
    """Return the means as `mean_uncompressed` does, of dense gradients with a quantizer."""
    dense = [p for p in parameters if p.stream is None]
    means = mean_uncompressed(
        method, comm, [p for p in parameters if p.stream is not None], state
    )
    if dense:
        pairs = allreduce_scaled(
            comm,
            [_corrected(method, comm, p, state) for p in dense],
            quantize=quantize,
            algorithm="auto",
            fixed_nnz=True,
            feedback=False,
            seed=seed,
        )
        for p, (total, _) in zip(dense, pairs, strict=True):
            means[p.name] = mean_dense(total, comm.size, p.out)
    return means


def _corrected(
    method: Method, comm: Communicator, parameter: Parameter, state: State
) -> Stream:
    """Return residual + gradient; a sparse gradient stays sparse if its residual is zero."""
    gradient = parameter.stream
    if gradient is None:
        gradient = Stream.unchecked(parameter.size, None, parameter.values)
    residual = scaled_residual(state, parameter)
    method.check_finite(comm, parameter.name, parameter.values)
    if residual is None or not residual.any():
        return gradient
    return add(Stream.unchecked(parameter.size, None, residual, gradient.block), gradient)
