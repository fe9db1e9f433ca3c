"""The handle of an optimizer: gradients become their means right before each step."""

from __future__ import annotations

import math
import time
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .handle import Handle
from .stats import counted
from .tensors import empty_rows, is_sparse, scaled, squares, values_of, write

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import Tensor

    from .buckets import Layout
    from .reducer import GradientReducer
    from .stats import Stats

NONE, DENSE, SPARSE = 0, 1, 2  # what a rank's gradient is; the larger one holds for all


class OptimizerHandle(Handle):
    """The compression in front of an optimizer; what it has not itself, the optimizer has."""

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        reducer: GradientReducer,
        names: Mapping[Tensor, str],
        clip: float | None,
        scaler: Any,
    ) -> None:
        super().__init__(reducer, names)
        self.optimizer = optimizer
        self._names, self._clip, self._scaler = names, clip, scaler
        self._ready = False  # whether gradients are means already
        self._tables = False  # whether all parameters have sparse gradients, on all ranks
        self._seconds = 0.0
        self._registered = [optimizer.register_step_pre_hook(self._before)]
        self._registered += [
            p.register_post_accumulate_grad_hook(self._has_come)
            for p in names
            if p.requires_grad
        ]

    def __getattr__(self, name: str) -> Any:
        if name == "optimizer":  # of a copy that is being made
            raise AttributeError(name)
        return getattr(self.optimizer, name)

    def aggregate(self) -> None:
        """Replace the gradients by their means: a collective call.

        The next step makes it itself; call it to do something with the means before. A second
        call without new gradients changes nothing.
        """
        if self._ready:
            return
        self._check_parameters()
        start = time.perf_counter()
        reducer, scale = self._reducer, None
        if self._scaler is not None:
            scale = float(self._scaler.get_scale())
        given = self._given()
        reducer.count(given.values())
        reducer.begin(scale)
        means = reducer.average(given)
        if not reducer.end():
            for mean in means.values():
                values_of(mean).fill_(torch.nan)
        self._put(means, self._factor(means, scale or 1.0))
        self._ready = True
        self._seconds += time.perf_counter() - start

    @property
    def stats(self) -> Stats:
        """Bytes, seconds and norms of this rank since the start."""
        return counted(self._reducer, exposed=self._seconds, active_seconds=self._seconds)

    def explain(self) -> str:
        """What is done with the gradients."""
        return (
            f"{self.method} before every step of {type(self.optimizer).__name__}, on "
            f"{self._reducer.comm.size} ranks; nothing of it is hidden"
        )

    def close(self) -> None:
        """Leave the optimizer as it was, and close the connections."""
        for each in self._registered:
            each.remove()
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

    def _has_come(self, parameter: Tensor) -> None:
        """A backward pass has made or added to a gradient: it is this rank's alone."""
        del parameter
        self._ready = False

    def _check_parameters(self) -> None:
        groups = self.optimizer.param_groups
        new = sum(p not in self._names for group in groups for p in group["params"])
        if new:
            error = RuntimeError(
                f"wrap: the optimizer has {new} parameters more than when it was wrapped, "
                f"whose gradients would stay each rank's own; close the handle and wrap it again "
                f"after add_param_group"
            )
            self._reducer.comm.abort(error)
            raise error

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
        """The gradients of all parameters that any rank has one for.

        Ranks ask each other who has one; of tables they need not, since a rank that has not
        used one takes part without rows.
        """
        if self._tables:
            return {name: self._of_kind(p, SPARSE) for p, name in self._names.items()}
        mine = np.array([_kind(p) for p in self._names], np.float32)
        agreed = self._reducer.comm.allreduce(mine, op="max")
        self._tables = bool(np.all(agreed == SPARSE))
        return {
            name: self._of_kind(p, int(kind))
            for (p, name), kind in zip(self._names.items(), agreed, strict=True)
            if kind != NONE
        }

    def _of_kind(self, parameter: Tensor, kind: int) -> Tensor:
        if parameter.grad is None:
            return empty_rows(parameter) if kind == SPARSE else torch.zeros_like(parameter)
        if _kind(parameter) != kind:
            name, comm = self._names[parameter], self._reducer.comm
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
            if is_sparse(mean):  # without rows, no rank has used the table
                rows = mean.to(parameter.dtype)
                parameter.grad = rows if rows._nnz() else None
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
