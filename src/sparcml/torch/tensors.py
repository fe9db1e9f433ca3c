"""Operations on gradient tensors, and the selection of parameters by name."""

from __future__ import annotations

import math
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np
import torch

from ..aggregate.error_feedback import squared_norm
from ..stream.tensors import on_host

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from torch import Tensor

HOSTED = ("cpu", "cuda")  # devices whose tensors are read in place or copied to the host
USE_DDP = "use torch.nn.parallel.DistributedDataParallel"
FITS = f"{USE_DDP} if the model fits into the memory of each rank"
PARALLEL = {  # classes in torch.distributed: their names, and what to use instead
    "FullyShardedDataParallel": ("FSDP1 (FullyShardedDataParallel)", FITS),
    "ReplicateModule": ("replicate()", USE_DDP),
    "DDP": ("replicate()", USE_DDP),
    "FSDPModule": ("FSDP2 (fully_shard)", FITS),
}
COMPILED = "_orig_mod"  # attribute of a compiled module that holds the original
FLOATS = (torch.float32, torch.float64)


def plain_name(name: str) -> str:
    """Return the name of a parameter without the parts that `torch.compile` adds."""
    return ".".join(part for part in name.split(".") if part != COMPILED)


def excluded_names(
    function: str, names: Sequence[str], leave: str | Iterable[str]
) -> frozenset[str]:
    """Return the names that match one of the patterns, such as "head.*" or "*.embed*".

    Raises:
        ValueError: If a pattern matches no name.
    """
    patterns = [plain_name(p) for p in ([leave] if isinstance(leave, str) else leave)]
    excluded: set[str] = set()
    for pattern in patterns:
        matching = {name for name in names if fnmatchcase(name, pattern)}
        if not matching:
            raise ValueError(
                f"{function}: leave must match a parameter, got {pattern!r}; the parameters are "
                f"{', '.join(names[:8])}{' ...' if len(names) > 8 else ''}"
            )
        excluded |= matching
    return frozenset(excluded)


def sparse_tables(module: torch.nn.Module) -> frozenset[str]:
    """Return the names of the parameters that get sparse gradients."""
    types = (torch.nn.Embedding, torch.nn.EmbeddingBag)
    return frozenset(
        plain_name(f"{name}.weight" if name else "weight")
        for name, part in module.named_modules()
        if isinstance(part, types) and part.sparse
    )


def check_device(function: str, name: str, tensor: Tensor) -> None:
    """Raise unless gradients of a parameter can be sent."""
    device = tensor.device.type
    if device not in HOSTED:
        raise ValueError(
            f"{function}: parameter {name!r} must be on one of the devices "
            f"{', '.join(HOSTED)}, got {device!r}; move the model first"
        )
    if not tensor.dtype.is_floating_point:
        raise TypeError(
            f"{function}: parameter {name!r} must have floating point values, got "
            f"{tensor.dtype}; exclude it from training with requires_grad_(False)"
        )


def check_parallelism(
    function: str, model: torch.nn.Module | None, parameters: Iterable[Tensor]
) -> None:
    """Raise if gradients are not full on each rank, or are averaged by something else."""
    for kind, remedy in _parallelisms(model, parameters):
        raise TypeError(
            f"{function}: {kind} is not supported; {remedy}, or train without sparcml.torch"
        )


def _parallelisms(
    model: torch.nn.Module | None, parameters: Iterable[Tensor]
) -> Iterator[tuple[str, str]]:
    modules = () if model is None else model.modules()
    for base in (base for module in modules for base in type(module).__mro__):
        # By name, because importing these classes takes a second.
        if base.__module__.startswith("torch.distributed") and base.__name__ in PARALLEL:
            yield PARALLEL[base.__name__]
    for parameter in parameters:
        if type(parameter).__name__ == "DTensor":
            yield "a parameter that is a DTensor", f"{USE_DDP} with plain tensors"
        if getattr(parameter, "_is_flat_param", False):
            yield PARALLEL["FullyShardedDataParallel"]


def is_sparse(tensor: Tensor) -> bool:
    """Return whether a gradient stores rows only, as of `nn.Embedding(sparse=True)`."""
    return bool(tensor.layout is torch.sparse_coo)


def values_of(tensor: Tensor) -> Tensor:
    """Return the stored values as a dense tensor."""
    return tensor._values() if is_sparse(tensor) else tensor


def squares(tensor: Tensor) -> float:
    """Return the sum of squares in double precision."""
    values = values_of(tensor).detach()
    if values.device.type != "cpu":
        return float(torch.linalg.vector_norm(values, dtype=torch.float64)) ** 2
    if values.dtype not in FLOATS:
        values = values.float()
    return squared_norm(on_host(values.contiguous()).reshape(-1))


def is_finite(tensor: Tensor) -> bool:
    """Return whether a gradient has neither NaN nor infinity."""
    if math.isfinite(squares(tensor)):
        return True
    return bool(values_of(tensor).isfinite().all())


def scaled(tensor: Tensor, factor: float) -> Tensor:
    """Return the tensor times a factor, in float32 or float64; itself if possible."""
    wide = tensor if tensor.dtype in FLOATS else tensor.float()
    return wide if factor == 1 else wide * factor


def zero_gradient(gradient: Tensor) -> Tensor:
    """Return a zero gradient of the same layout; a sparse one has no rows."""
    return empty_rows(gradient) if is_sparse(gradient) else torch.zeros_like(gradient)


def empty_rows(parameter: Tensor) -> Tensor:
    """Return a sparse gradient without rows."""
    return torch.sparse_coo_tensor(
        torch.empty((1, 0), dtype=torch.int64, device=parameter.device),
        torch.empty(
            (0, *parameter.shape[1:]), dtype=parameter.dtype, device=parameter.device
        ),
        parameter.shape,
        is_coalesced=True,
        check_invariants=False,
    )


def write(target: Tensor, source: Tensor) -> None:
    """Copy values into a tensor."""
    if target.data_ptr() == source.data_ptr():
        return
    on_cpu = target.device.type == "cpu" and target.dtype is source.dtype
    if on_cpu and target.dtype in (*FLOATS, torch.float16):
        # NumPy copies in this thread; torch's threads are busy with the backward pass.
        np.copyto(on_host(target), on_host(source))
    else:
        target.copy_(source)
