"""Updates of Adam that ranks exchange inside `optimizer.step()`.

A method such as `sparcml.TopKAdam` has two phases for each parameter that it compresses:

1. Gradients are averaged as by other methods, and the user's optimizer makes its step.
2. After `freeze_step` steps of the optimizer, all gradients stay those of this rank, so that
   clipping them is local. `optimizer.step()` first averages those of other parameters. Then
   ranks exchange updates, which are subtracted from the weights, with the optimizer's weight
   decay. The optimizer does not get the gradients of these parameters, so it leaves them as they
   are. Their `exp_avg` and `step` continue. `exp_avg_sq` is what gives the frozen denominator at
   this `step`, so that plain Adam can resume from it. With `TopKAdam` every rank has its own
   `exp_avg`.

As without compression, a parameter that has no gradient on any rank stays as it is. A rank without
a gradient that another rank has contributes zeros.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..aggregate.frozen_adam import ADAM_STEP, DENOMINATOR, EXP_AVG, FrozenAdam
from ..aggregate.state import key
from ..stream.tensors import flat_array
from .tensors import write

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray
    from torch import Tensor

    from .reducer import GradientReducer


class AdamUpdates:
    """Applies the updates of the second phase.

    Args:
        optimizer: A torch.optim.Adam or AdamW.
        reducer: Exchanges the updates, and keeps their state.
        names: Names of all parameters.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        reducer: GradientReducer,
        names: Mapping[Tensor, str],
    ) -> None:
        self.optimizer, self._reducer = optimizer, reducer
        self._names = {p: names[p] for p in self._groups if p in names}
        self._hidden: dict[Tensor, Tensor] = {}

    @property
    def _groups(self) -> dict[Tensor, dict[str, Any]]:
        """Groups of all parameters, which `optimizer.load_state_dict` replaces."""
        return {p: group for group in self.optimizer.param_groups for p in group["params"]}

    @property
    def frozen(self) -> dict[str, Tensor]:
        """Parameters in the second phase, by name."""
        method = self._reducer.method
        if not isinstance(method, FrozenAdam):
            return {}
        return {
            name: p
            for p, name in self._names.items()
            if self._reducer.compresses(name, tuple(p.shape))
            and self._steps(p) >= method.freeze_step
        }

    @property
    def local(self) -> Collection[str]:
        """Names of the gradients that stay those of this rank in the backward pass."""
        return set(self._names.values()) if self.frozen else ()

    def exchange(self) -> None:
        """Average the other gradients, exchange updates and apply them. Collective."""
        frozen, reducer = self.frozen, self._reducer
        if not frozen:
            return
        used = self._used()
        others: dict[str, Tensor] = {}
        for p, name in self._names.items():
            if name in used and name not in frozen:
                if p.grad is None:
                    p.grad = torch.zeros_like(p)
                others[name] = p.grad
        for name, mean in reducer.average_exactly(others).items():
            write(others[name], mean)
        frozen = {name: p for name, p in frozen.items() if name in used}
        groups = self._groups
        gradients = {name: self._gradient(p, groups[p]) for name, p in frozen.items()}
        for name, p in frozen.items():
            self._freeze(name, p)
        updates = reducer.exchange(gradients)
        with torch.no_grad():
            for name, p in frozen.items():
                group, state = groups[p], self.optimizer.state[p]
                if is_decoupled(self.optimizer, group):
                    p.mul_(1 - float(group["lr"]) * group["weight_decay"])
                p.sub_(updates[name].to(p.dtype))
                _fill(state["exp_avg"], reducer.state[key(EXP_AVG, name)])
                state["step"] += 1
                self._write_second_moment(name, p)

    def release(self) -> None:
        """Give the optimizers of all ranks the same moments, for another method. Collective."""
        for name, p in self.frozen.items():
            moment = self._reducer.state.get(key(EXP_AVG, name))
            if moment is not None:
                mean = np.array(self._reducer.comm.allreduce(moment, op="mean"))
                _fill(self.optimizer.state[p]["exp_avg"], mean)
                self._write_second_moment(name, p)

    def hide(self) -> None:
        """Take the gradients of frozen parameters away from the optimizer."""
        for p in self.frozen.values():
            if p.grad is not None:
                self._hidden[p], p.grad = p.grad, None

    def restore(self) -> None:
        """Give the hidden gradients back."""
        for p, gradient in self._hidden.items():
            p.grad = gradient
        self._hidden.clear()

    def _steps(self, p: Tensor) -> int:
        return int(self.optimizer.state.get(p, {}).get("step", 0))

    def _used(self) -> set[str]:
        """Return the names of parameters that have a gradient on any rank. Collective."""
        own = np.array([p.grad is not None for p in self._names], np.float32)
        used = self._reducer.comm.allreduce(own, op="max")
        return {
            name
            for name, any_rank in zip(self._names.values(), used, strict=True)
            if any_rank
        }

    def _gradient(self, p: Tensor, group: Mapping[str, Any]) -> Tensor:
        """Return the gradient of this rank, with a weight decay that is part of it."""
        gradient = torch.zeros_like(p) if p.grad is None else p.grad.detach()
        if group["weight_decay"] and not is_decoupled(self.optimizer, group):
            return gradient + group["weight_decay"] * p.detach()
        return gradient.clone()  # it may be overwritten

    def _freeze(self, name: str, p: Tensor) -> None:
        """Take over the moments of the optimizer when the second phase begins."""
        state, method = self._reducer.state, self._reducer.method
        assert isinstance(method, FrozenAdam)
        own, t = self.optimizer.state[p], self._steps(p)
        state[key(ADAM_STEP, name)] = np.array(t, np.int64)
        if key(DENOMINATOR, name) not in state:
            v = flat_array(own["exp_avg_sq"])
            state[key(DENOMINATOR, name)] = method.frozen_denominator(v, t)
        if key(EXP_AVG, name) not in state:
            state[key(EXP_AVG, name)] = flat_array(own["exp_avg"]).copy()

    def _write_second_moment(self, name: str, p: Tensor) -> None:
        """Give the optimizer the second moment of the frozen denominator at its step."""
        method = self._reducer.method
        assert isinstance(method, FrozenAdam)
        denominator = self._reducer.state[key(DENOMINATOR, name)]
        moment = method.second_moment(denominator, self._steps(p))
        _fill(self.optimizer.state[p]["exp_avg_sq"], moment)


def _fill(target: Tensor, values: NDArray[Any]) -> None:
    target.copy_(torch.from_numpy(np.asarray(values)).reshape(target.shape))


def is_decoupled(optimizer: torch.optim.Optimizer, group: Mapping[str, Any]) -> bool:
    """Return whether weight decay is that of AdamW."""
    default = isinstance(optimizer, torch.optim.AdamW)
    return bool(group.get("decoupled_weight_decay", default))


def with_settings(
    function: str,
    method: FrozenAdam,
    optimizer: torch.optim.Optimizer | None,
    scaler: Any = None,
    clip: Any = None,
) -> FrozenAdam:
    """Return the method with the betas and the eps of an optimizer.

    Args:
        function: Name of the function whose arguments these are, for errors.
        method: The method.
        optimizer: The optimizer of the model.
        scaler: A torch.amp.GradScaler, or None.
        clip: Limit to a norm, or None.

    Raises:
        TypeError: If the optimizer is not an Adam.
        ValueError: If the method cannot work with one of the arguments.
    """
    name = type(method).__name__
    if not isinstance(optimizer, torch.optim.Adam):  # AdamW is a subclass
        raise TypeError(
            f"{function}: optimizer must be a torch.optim.Adam or AdamW with {name}, got "
            f"{None if optimizer is None else type(optimizer).__name__}; for other optimizers "
            f"use sparcml.torch.recommended(optimizer)"
        )
    if scaler is not None:
        raise ValueError(
            f"{function}: scaler must be None with {name}, which exchanges updates; use "
            f"bfloat16 instead of float16"
        )
    if clip is not None:
        raise ValueError(
            f"{function}: clip and clip_each must be None with {name}, which exchanges updates; "
            f"use torch.nn.utils.clip_grad_norm_ after backward()"
        )
    for flag in ("amsgrad", "maximize"):
        if any(group.get(flag) for group in optimizer.param_groups):
            raise ValueError(
                f"{function}: {flag} of the optimizer must be False with {name}"
            )
    groups = [
        (tuple(map(float, g["betas"])), float(g["eps"])) for g in optimizer.param_groups
    ]
    if len(set(groups)) > 1:
        raise ValueError(
            f"{function}: all parameter groups must have the same betas and eps with {name}, "
            f"got {sorted(set(groups))}"
        )
    (beta1, beta2), eps = groups[0]
    return replace(method, betas=(beta1, beta2), eps=eps)
