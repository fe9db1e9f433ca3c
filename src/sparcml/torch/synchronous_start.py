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
from ..stream.tensors import on_host, to_tensor
from ..validation import check_integer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..aggregate.state import State
    from ..communicator.communicator import Communicator
    from .flat_parameters import FlatParameters


class SynchronousStart:
    """Averages the gradients of the first steps.

    Args:
        function: Name of the call, for error messages.
        steps: Number of these steps.
        method: Aggregation method of the gradients, or a quantizer or sparsifier. Default:
            `sparcml.Dense()`.
        parameters: Parameters of the optimizer.

    Attributes:
        made: Number of completed steps of the start.
        method: The aggregation method.
    """

    def __init__(
        self, function: str, steps: int, method: Any, parameters: FlatParameters
    ) -> None:
        self.synchronous_steps, self.made = steps, 0
        check_integer(self, "synchronous_steps", minimum=0)
        self.method = aggregate.Dense() if method is None else as_method(function, method)
        if not self.method.returns_mean:
            raise ValueError(
                f"{function}: synchronous_method must return a mean, which {self.method} does "
                f"not; use sparcml.Compressed(...)"
            )
        if method is not None and not steps:
            raise ValueError(
                f"{function}: synchronous_method must be None without synchronous_steps, got "
                f"{method}"
            )
        self._parameters = parameters
        self._state: State = {}
        if self:
            shapes = {name: shape for name, shape, _ in parameters.layout}
            self._state = self.method.init(shapes)

    def __bool__(self) -> bool:
        """Return whether the next step is one of the start."""
        return self.made < self.synchronous_steps

    def average(self, comm: Communicator) -> None:
        """Replace the gradients by their mean over ranks. Collective."""
        tensors = self._parameters.by_name
        gradients = {}
        for name, p in tensors.items():
            gradient = torch.zeros_like(p) if p.grad is None else p.grad.to_dense()
            gradients[name] = np.array(on_host(gradient.detach()))
        mean, self._state = self.method.aggregate(comm, gradients, self._state)
        for name, p in tensors.items():
            p.grad = to_tensor(np.array(mean[name]), like=p.detach())

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
