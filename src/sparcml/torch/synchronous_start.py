"""The synchronous start of local training: steps in which gradients are averaged, as in DDP.

From random weights, workers that train on their own for many steps run apart: the mean of their
models is worse than each of them. After a synchronous start they stay close enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .. import aggregate
from ..aggregate.parse import as_method
from ..aggregate.state import consolidate
from ..communicator.collective_errors import aborting
from ..stream.tensors import on_host, to_tensor
from ..validation import as_integer
from .grad_scaler import unscales_in_step
from .tensors import sparse_tables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..aggregate.state import State
    from ..communicator.communicator import Communicator
    from ..stream.arrays import Values
    from .replica import Replica

FIRST = 1024  # values that are inspected before all


class SynchronousStart:
    """Averages the gradients of the first steps.

    Args:
        function: Name of the call, for error messages.
        steps: Number of these steps.
        method: Aggregation method of the gradients, or a quantizer or sparsifier. Default:
            `sparcml.Dense()`.
        replica: The model of this rank.

    Attributes:
        made: Number of completed steps of the start.
        method: The aggregation method.
    """

    def __init__(self, function: str, steps: int, method: Any, replica: Replica) -> None:
        self.made, self._function = 0, function
        self.synchronous_steps = as_integer(function, "synchronous_steps", steps, minimum=0)
        self.method = aggregate.Dense() if method is None else as_method(function, method)
        if not self.method.returns_mean:
            raise ValueError(
                f"{function}: synchronous_method must return a mean, got {self.method}; use "
                f"sparcml.Compressed(...)"
            )
        if method is not None and not steps:
            raise ValueError(
                f"{function}: synchronous_method must be None without synchronous_steps, got "
                f"{method}; pass synchronous_steps="
            )
        self._parameters = replica.parameters
        self._tables = sparse_tables(replica.model)
        self._state: State = {}
        if self:
            shapes = {name: shape for name, shape, _ in self._parameters.layout}
            self._state = self.method.init(shapes)

    def __bool__(self) -> bool:
        """Return whether the next step is one of the start."""
        return self.made < self.synchronous_steps

    def check_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Raise a RuntimeError if the optimizer unscales gradients itself, by its rank's scale."""
        if self and unscales_in_step(optimizer):
            raise RuntimeError(
                f"{self._function}: optimizer must not be fused with a GradScaler in a synchronous "
                f"start, got {type(optimizer).__name__}; each rank would have another scale, so "
                f"use torch.autocast with bfloat16"
            )

    def average(self, comm: Communicator) -> None:
        """Replace the gradients by their mean over ranks. Collective.

        A parameter without a gradient on all ranks keeps none, as in DDP: a zero would let the
        optimizer apply its weight decay and momentum. If some ranks have one, it is zero on
        the others.
        """
        tensors = self._parameters.by_name
        gradients = {}
        for name, p in tensors.items():
            gradient = torch.zeros_like(p) if p.grad is None else p.grad.to_dense()
            gradients[name] = np.array(on_host(gradient.detach()))
        if self.method.nonfinite == "raise":
            with aborting(comm):
                self._check_finite(comm.rank, gradients)
        mean, self._state = self.method.aggregate(comm, gradients, self._state)
        unused = self._unused(comm, mean)
        for name, p in tensors.items():
            if name in unused:
                p.grad = None
                continue
            gradient = to_tensor(np.array(mean[name]), like=p.detach())
            p.grad = gradient.to_sparse(1) if name in self._tables else gradient

    def _check_finite(self, rank: int, gradients: Mapping[str, Values]) -> None:
        """Raise a ValueError if values are NaN or infinite."""
        for name, gradient in gradients.items():
            finite = np.isfinite(gradient)
            if not finite.all():
                raise ValueError(
                    f"{self._function}: gradients must be finite in a synchronous start, got "
                    f"{np.count_nonzero(~finite)} values of {name!r} on rank {rank} that are NaN "
                    f"or infinite; check the loss and learning rate, or pass "
                    f'synchronous_method=sparcml.Dense(nonfinite="propagate")'
                )

    def _unused(self, comm: Communicator, mean: Mapping[str, Any]) -> set[str]:
        """Return parameters without a gradient on all ranks. Collective.

        Only a mean of zeros, which is the same on all ranks, can be that of such a parameter: in
        most steps there is none, and nothing is sent.
        """
        zero = [name for name in self._parameters.names if _is_zero(mean[name])]
        if not zero:
            return set()
        tensors = self._parameters.by_name
        has_gradient = np.array(
            [tensors[name].grad is not None for name in zero], np.float32
        )
        used = comm.allreduce(has_gradient, op="max")
        return {name for name, is_used in zip(zero, used, strict=True) if not is_used}

    @property
    def _settings(self) -> str:
        return f"{self.synchronous_steps} steps with {self.method}"

    def saved(self, comm: Communicator | None = None) -> dict[str, Any]:
        """Return the state; with a communicator, one for any world size. Collective then."""
        state = self._state
        if comm is not None and self:
            state = consolidate(comm, state)
        arrays = {key: torch.from_numpy(np.array(v)) for key, v in state.items()}
        return {"made": self.made, "settings": self._settings, "state": arrays}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue from a result of `saved`."""
        found = saved.get("settings", self._settings)
        if found != self._settings:
            raise ValueError(
                f"load_state_dict: the synchronous start of the state must be {self._settings}, "
                f"got {found}; construct the object with its synchronous_steps and "
                f"synchronous_method"
            )
        self.made = int(saved["made"])
        self._state = {key: on_host(v).copy() for key, v in saved["state"].items()}


def _is_zero(values: Values) -> bool:
    """Return whether all values are zero; most gradients are not in their first ones."""
    return not np.any(values.reshape(-1)[:FIRST]) and not np.any(values)
