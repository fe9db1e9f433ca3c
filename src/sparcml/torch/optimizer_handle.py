"""Handle of an optimizer: gradients are averaged before each step."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .closures import after_closure
from .handle import Handle, weak
from .stats import collect, table
from .step_hooks import register_step_hooks, unwrap_optimizer
from .tensors import empty_rows, is_sparse, scaled, squares, values_of, write

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import Tensor

    from .adam_updates import AdamUpdates
    from .buckets import Layout
    from .reducer import GradientReducer
    from .stats import Stats

NONE, DENSE, SPARSE = 0, 1, 2  # layouts of a gradient; the maximum over ranks is used


class OptimizerHandle(Handle):
    """Handle of an optimizer; unknown attributes are those of the optimizer."""

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        reducer: GradientReducer,
        names: Mapping[Tensor, str],
        clip: float | None,
        scaler: Any,
    ) -> None:
        super().__init__(reducer, names, unwrap_optimizer("wrap", optimizer))
        self.optimizer = optimizer
        self._names, self._clip, self._scaler = names, clip, scaler
        self._averaged = False  # whether the gradients are means
        self._all_sparse = False  # whether all gradients of all ranks are sparse
        self._seconds = 0.0
        self._step_hooks = register_step_hooks(
            optimizer, self, self._before_step, self._after_step
        )
        self._step_hooks += [
            p.register_post_accumulate_grad_hook(weak(self._after_gradient))
            for p in names
            if p.requires_grad
        ]

    def __getattr__(self, name: str) -> Any:
        if name == "optimizer":  # a copy has no attributes yet
            raise AttributeError(name)
        return getattr(self.optimizer, name)

    def aggregate(self) -> None:
        """Replace the gradients by their means. Collective.

        `optimizer.step()` calls it; call it earlier to use the means before the step. A second
        call without new gradients has no effect.
        """
        if self._averaged or (self._updates is not None and self._updates.frozen):
            return
        self._check_parameters()
        start = time.perf_counter()
        reducer, scale = self._reducer, None
        if self._scaler is not None:
            scale = float(self._scaler.get_scale())
        gradients = self._gradients()
        reducer.count(gradients.values())
        reducer.begin(scale)
        means = reducer.average(gradients)
        if not reducer.end():
            for mean in means.values():
                values_of(mean).fill_(torch.nan)
        self._write(means, self._clip_factor(means, scale or 1.0))
        self._averaged = True
        self._seconds += time.perf_counter() - start

    @property
    def stats(self) -> Stats:
        """Bytes, seconds and norms of this rank since the start."""
        seconds = self._seconds
        return collect(self._reducer, exposed=seconds, active_seconds=seconds)

    def explain(self) -> str:
        """Return a table of the method, the optimizer and the network."""
        comm = self._reducer.comm
        return table(
            [
                ("method", str(self.method)),
                ("compressed", self._coverage()),
                *self._choices(),
                ("ranks", str(comm.size)),
                ("network", comm.network.source),
                ("optimizer", type(self.optimizer).__name__),
                ("overlap", "none: gradients are averaged before each optimizer step"),
            ]
        )

    def close(self) -> None:
        """Remove the hooks from the optimizer and close the connections."""
        super().close()

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        del optimizer
        arguments = after_closure(args, kwargs, self._average_or_exchange)
        if arguments is not None:
            return arguments
        if self._scaler is not None and not self._averaged:
            raise RuntimeError(
                "wrap: handle.aggregate() must be called before scaler.step(optimizer), so "
                "that all ranks apply or skip the step together"
            )
        self._average_or_exchange()
        return None

    def _average_or_exchange(self) -> None:
        """Prepare the gradients for the optimizer, or apply updates in their place."""
        self.aggregate()
        if self._updates is not None and self._updates.frozen:
            self._exchange(self._updates)
        self._averaged = False

    def _exchange(self, updates: AdamUpdates) -> None:
        """Exchange updates in place of gradients."""
        self._check_parameters()
        start = time.perf_counter()
        gradients = [p.grad for p in self._names if p.grad is not None]
        self._reducer.count(gradients)
        self._reducer.begin()
        updates.exchange()
        self._reducer.end()
        updates.hide()
        self._seconds += time.perf_counter() - start

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        del optimizer, args, kwargs
        if self._updates is not None:
            self._updates.restore()

    def _after_gradient(self, parameter: Tensor) -> None:
        """Note that a backward pass has changed a gradient, which is no mean any more."""
        del parameter
        self._averaged = False

    def _check_parameters(self) -> None:
        groups = self.optimizer.param_groups
        new = sum(p not in self._names for group in groups for p in group["params"])
        if new:
            error = RuntimeError(
                f"wrap: the optimizer has {new} parameters that were added after wrap, whose "
                f"gradients would not be averaged; close the handle and wrap the optimizer "
                f"again after add_param_group"
            )
            self._reducer.comm.abort(error)
            raise error

    def _gradients(self) -> dict[str, Tensor]:
        """Return the gradients of all parameters that have one on any rank.

        Ranks agree on which these are. If all gradients are sparse they need not: a rank that
        did not use a table contributes no rows.
        """
        if self._all_sparse:
            return {name: self._gradient(p, SPARSE) for p, name in self._names.items()}
        own = np.array([_layout(p) for p in self._names], np.float32)
        agreed = self._reducer.comm.allreduce(own, op="max")
        self._all_sparse = bool(np.all(agreed == SPARSE))
        return {
            name: self._gradient(p, int(layout))
            for (p, name), layout in zip(self._names.items(), agreed, strict=True)
            if layout != NONE
        }

    def _gradient(self, parameter: Tensor, layout: int) -> Tensor:
        if parameter.grad is None:
            return (
                empty_rows(parameter) if layout == SPARSE else torch.zeros_like(parameter)
            )
        if _layout(parameter) != layout:
            name, comm = self._names[parameter], self._reducer.comm
            error = ValueError(
                f"rank {comm.rank}: the gradient of {name!r} is dense, and sparse on another "
                f"rank; all ranks must use the same layout of embedding gradients"
            )
            comm.abort(error)
            raise error
        return parameter.grad.detach()

    def _clip_factor(self, means: Mapping[str, Tensor], scale: float) -> float:
        if self._clip is None:
            return 1.0
        norm = math.sqrt(math.fsum(squares(mean) for mean in means.values())) / scale
        return min(1.0, self._clip / (norm + 1e-6))

    def _write(self, means: Mapping[str, Tensor], factor: float) -> None:
        for parameter, name in self._names.items():
            if name not in means:
                continue
            mean = means[name] if factor == 1 else scaled(means[name], factor)
            if parameter.grad is None and not is_sparse(mean):
                # The mean may share memory with the state, so it is copied.
                parameter.grad = torch.zeros_like(parameter)
            if is_sparse(mean):  # without rows, no rank has used the table
                rows = mean.to(parameter.dtype)
                parameter.grad = rows if rows._nnz() else None
            else:
                write(parameter.grad, mean)

    def _between_steps(self, work: Callable[[], Any]) -> Any:
        return work()

    def _get_layout(self) -> Layout:
        return []  # all gradients are averaged together

    def _set_layout(self, layout: Layout) -> None:
        del layout


def _layout(parameter: Tensor) -> int:
    if parameter.grad is None:
        return NONE
    return SPARSE if is_sparse(parameter.grad) else DENSE
