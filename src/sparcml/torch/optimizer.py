"""wrap: training without DDP, with gradients averaged right before the optimizer's step."""

from __future__ import annotations

import math
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn.parallel import DistributedDataParallel

from .. import kernels
from ..aggregate import Method
from ..ranks import from_group
from .clipping import Clip
from .handle import Handle
from .ledger import Ledger
from .rules import left_alone
from .tensors import check_device, is_sparse, no_rows, scaled, squares, values_of, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from torch import Tensor

    from ..communicator import Communicator
    from .buckets import Layout

NONE, DENSE, SPARSE = 0, 1, 2  # what a rank's gradient is; the larger one holds for all


def wrap(
    optimizer: torch.optim.Optimizer,
    method: Method,
    *,
    model: torch.nn.Module | None = None,
    group: Any = None,
    leave: str | Iterable[str] = (),
    clip: float | None = None,
    scaler: Any = None,
    timeout: float | None = None,
) -> Wrapped:
    """Have an optimizer average the gradients of all ranks before each of its steps.

    A collective call: all ranks make it, with the same weights. The optimizer stays the same
    object: schedulers, GradScalers and `optimizer.step()` work as before. Sparse
    gradients, such as those of `nn.Embedding(sparse=True)`, travel without loss and stay
    sparse, so that time and memory follow the rows that were used.

    Args:
        optimizer: Any of torch's kind.
        method: Such as `sparcml.Compressed(sparcml.TopK(0.005), sparcml.QSGD(8))`.
        model: Gives parameters their names; without it they are numbered.
        group: The process group; the default one if None.
        leave: As for `compress`.
        clip: Limit to the norm of the whole mean gradient, as
            `torch.nn.utils.clip_grad_norm_` has it.
        scaler: The torch.amp.GradScaler in use: call `handle.aggregate()` before
            `scaler.step(optimizer)`, so that all ranks make or skip the step together.
        timeout: As for `compress`.
    """
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"wrap: expected an optimizer, got {type(optimizer).__name__}")
    if not isinstance(method, Method):
        raise TypeError(
            f"wrap: expected a method such as sparcml.Compressed(sparcml.TopK(0.01)), got "
            f"{method!r}"
        )
    if isinstance(model, DistributedDataParallel):
        raise TypeError(
            "wrap: this model is a DistributedDataParallel, which averages gradients itself; "
            "use sparcml.torch.compress(model, method)"
        )
    names = _names(optimizer, model)
    left = left_alone(list(names.values()), leave)
    limit = Clip(clip).norm
    comm = from_group(group, timeout=timeout)
    _check_same_weights(comm, names)
    return Wrapped(optimizer, Ledger(comm, method, left), names, limit, scaler)


def _names(
    optimizer: torch.optim.Optimizer, model: torch.nn.Module | None
) -> dict[Tensor, str]:
    known = {} if model is None else {p: n for n, p in model.named_parameters()}
    names = {
        p: known.get(p, f"{g}.{i}")
        for g, members in enumerate(optimizer.param_groups)
        for i, p in enumerate(members["params"])
    }
    for parameter, name in names.items():
        check_device(name, parameter)
    return names


def _check_same_weights(comm: Communicator, names: Mapping[Tensor, str]) -> None:
    """Ranks that begin at different weights never come together."""
    crc = 0
    for parameter in names:
        bits = parameter.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        crc = kernels.crc32c(bits.numpy(), crc)
    crcs = np.array(comm.allgather(np.array([crc], np.float64))).reshape(-1)
    others = np.flatnonzero(crcs != crc)
    if len(others):
        raise ValueError(
            f"wrap: rank {comm.rank} and rank {others[0]} begin with different weights; set the "
            f"same torch.manual_seed before making the model, or send those of rank 0 with "
            f"torch.distributed.broadcast"
        )


class Wrapped(Handle):
    """The compression in front of an optimizer; what it has not itself, the optimizer has."""

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        ledger: Ledger,
        names: Mapping[Tensor, str],
        clip: float | None,
        scaler: Any,
    ) -> None:
        super().__init__(ledger, names)
        self.optimizer = optimizer
        self._names, self._clip, self._scaler = names, clip, scaler
        self._ready = False  # whether gradients are means already
        self._registered = optimizer.register_step_pre_hook(self._before)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["optimizer"], name)

    def aggregate(self) -> None:
        """Replace the gradients by their means: a collective call.

        The next step makes it itself; call it to do something with the means before.
        """
        ledger, scale = self._ledger, None
        if self._scaler is not None and self._scaler.is_enabled():
            scale = float(self._scaler.get_scale())
        given = self._given()
        ledger.begin(scale)
        means = ledger.average(given)
        if not ledger.end():
            for mean in means.values():
                values_of(mean).fill_(torch.nan)
        self._put(means, self._factor(means, scale or 1.0))
        self._ready = True

    def close(self) -> None:
        """Leave the optimizer as it was, and close the connections."""
        self._registered.remove()
        super().close()

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        del optimizer
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        if closure is not None:  # it makes the gradients
            return (args[0], self._with_means(closure)), {}
        if self._scaler is not None and not self._ready:
            raise RuntimeError(
                "wrap: call handle.aggregate() before scaler.step(optimizer), so that all "
                "ranks make or skip the step together"
            )
        if not self._ready:
            self.aggregate()
        self._ready = False
        return None

    def _with_means(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        @wraps(closure)
        def both() -> Any:
            with torch.enable_grad():
                loss = closure()
            self.aggregate()
            self._ready = False
            return loss

        return both

    def _given(self) -> dict[str, Tensor]:
        """The gradients of all parameters that any rank has one for."""
        mine = np.array([_kind(p) for p in self._names], np.float32)
        agreed = self._ledger.comm.allreduce(mine, op="max")
        return {
            name: self._of_kind(p, int(kind))
            for (p, name), kind in zip(self._names.items(), agreed, strict=True)
            if kind != NONE
        }

    def _of_kind(self, parameter: Tensor, kind: int) -> Tensor:
        if parameter.grad is None:
            return no_rows(parameter) if kind == SPARSE else torch.zeros_like(parameter)
        if _kind(parameter) != kind:
            name, comm = self._names[parameter], self._ledger.comm
            error = ValueError(
                f"rank {comm.rank}: the gradient of {name!r} is dense, and sparse on another "
                f"rank; all ranks must use the same kind of embedding"
            )
            comm.abort(error)
            raise error
        return parameter.grad.detach()

    def _factor(self, means: Mapping[str, Tensor], scale: float) -> float:
        if self._clip is None:
            return 1.0
        norm = math.sqrt(math.fsum(squares(mean) for mean in means.values())) / scale
        return min(1.0, self._clip / (norm + 1e-6))

    def _put(self, means: Mapping[str, Tensor], factor: float) -> None:
        for parameter, name in self._names.items():
            if name not in means:
                continue
            mean = means[name] if factor == 1 else scaled(means[name], factor)
            if parameter.grad is None and not is_sparse(mean):
                parameter.grad = torch.zeros_like(parameter)  # the mean may be the state's
            if is_sparse(mean):
                parameter.grad = mean.to(parameter.dtype)
            else:
                write(parameter.grad, mean)

    def _between_steps(self, work: Callable[[], Any]) -> Any:
        return work()

    def _get_layout(self) -> Layout:
        return []  # always all together

    def _set_layout(self, layout: Layout) -> None:
        del layout


def _kind(parameter: Tensor) -> int:
    if parameter.grad is None:
        return NONE
    return SPARSE if is_sparse(parameter.grad) else DENSE
