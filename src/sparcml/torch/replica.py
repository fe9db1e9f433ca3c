"""The model and the optimizer that one rank trains on its own."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .flat_parameters import parameters_of, trained_parameters
from .local_arguments import AVERAGE, LOCAL
from .optimizer_state import average_optimizer_state, mean_optimizer_state
from .running_buffers import RunningBuffers, broadcast_module
from .step_hooks import unwrap_optimizer
from .tensors import plain_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..communicator.communicator import Communicator
    from ..stream.arrays import Values


class Replica:
    """A model with the parameters that its optimizer trains.

    Args:
        function: Name of the call, for error messages.
        model: The model, with parameters of float32 or float64 on one device.
        optimizer: Optimizer of all its parameters.
        buffers: "average" averages floating-point buffers at the end of a round, "local" does not.
        optimizer_state: The same for the optimizer's state.

    Attributes:
        model: The model.
        optimizer: The optimizer, without wrappers.
        parameters: The trained parameters.
        buffers: The floating-point buffers.
    """

    def __init__(
        self,
        function: str,
        model: Any,
        optimizer: Any,
        buffers: str = LOCAL,
        optimizer_state: str = LOCAL,
    ) -> None:
        self.parameters = trained_parameters(
            function, model, optimizer, other="pass its module instead: model.module"
        )
        self.model: torch.nn.Module = model
        self.optimizer = unwrap_optimizer(function, optimizer)
        self.buffers = RunningBuffers(model)
        self._places = buffers, optimizer_state
        self._averages_buffers = buffers == AVERAGE and bool(self.buffers.size)
        self._averages_optimizer = optimizer_state == AVERAGE
        # Parameters and buffers before a broadcast, and parameters after it.
        self._own: tuple[dict[str, Values], Values, dict[str, Values]] | None = None

    @property
    def description(self) -> dict[str, object]:
        """What must be the same on all ranks."""
        return {
            "parameters": self.parameters.layout,
            "buffers": (self._places[0], self.buffers.layout),
            "optimizer state": self._places[1],
        }

    def read(self) -> dict[str, Values]:
        """Return copies of the parameters by name."""
        return self.parameters.read_by_name()

    def write(self, x: Mapping[str, Values]) -> None:
        """Set the parameters."""
        self.parameters.write_by_name(x)

    def copy_with(self, x: Mapping[str, Values]) -> torch.nn.Module:
        """Return a copy of the model with other parameters."""
        model = copy.deepcopy(self.model)
        parameters_of(model, self.parameters.names).write_by_name(x)
        return model

    def broadcast(self, comm: Communicator) -> None:
        """Set the model to that of rank 0. Collective."""
        own, buffers = self.read(), self.buffers.read()
        broadcast_module(comm, self.model)
        self._own = own, buffers, self.read()

    def end_step(self, function: str) -> None:
        """Check the optimizer after a step; the broadcast can no longer be undone."""
        self._own = None
        if not self.parameters.is_all_of(self.optimizer):
            raise RuntimeError(
                f"{function}: optimizer must have the parameters that it was passed with, got some "
                f"that were added later; call close() and construct {function} again after "
                f"add_param_group"
            )

    def average(self, comm: Communicator) -> None:
        """Average what is not part of an exchange, at the end of a round. Collective."""
        self.average_buffers(comm)
        if self._averages_optimizer:
            average_optimizer_state(comm, self.optimizer)

    def average_buffers(self, comm: Communicator) -> None:
        """Average the floating-point buffers, unless they are local. Collective."""
        if self._averages_buffers:
            self.buffers.average(comm)

    def undo_broadcast(self) -> None:
        """Restore the model before the broadcast, unless another was loaded since."""
        own, self._own = self._own, None
        if own is None:
            return
        parameters, buffers, broadcast = own
        now = self.read()
        if all(np.array_equal(now[name], broadcast[name]) for name in now):
            self.write(parameters)
            self.buffers.write(buffers)

    def consolidate(self, comm: Communicator, x: Mapping[str, Values]) -> dict[str, Any]:
        """Return a state for any world size, with these parameters. Collective.

        Buffers and the optimizer's state are averaged. What is neither trained nor averaged, such
        as frozen parameters, is that of this rank.
        """
        buffers = np.array(comm.allreduce(self.buffers.read(), op="mean"))
        return {
            "parameters": {n: torch.from_numpy(np.array(v)) for n, v in x.items()},
            "buffers": torch.from_numpy(buffers),
            "optimizer": mean_optimizer_state(comm, self.optimizer),
            "others": _others(self.model, self.parameters.names),
        }

    def load(self, saved: Mapping[str, Any]) -> None:
        """Set all to a result of `consolidate`."""
        # First: a shared parameter has several names, of which one is trained.
        entries = {plain_name(name): v for name, v in self.model.state_dict().items()}
        with torch.no_grad():
            for name, value in saved.get("others", {}).items():
                entries[name].copy_(value)
        self.write({name: value.numpy() for name, value in saved["parameters"].items()})
        self.buffers.write(saved["buffers"].numpy())
        self.optimizer.load_state_dict(saved["optimizer"])
        self._own = None


def _others(model: torch.nn.Module, trained: Sequence[str]) -> dict[str, Any]:
    """Return copies of what is neither trained nor averaged."""
    entries = {plain_name(name): value for name, value in model.state_dict().items()}
    buffers = {plain_name(name) for name, _ in model.named_buffers()}
    return {
        name: value.detach().cpu().clone()
        for name, value in entries.items()
        if isinstance(value, torch.Tensor)
        and name not in trained
        and not (name in buffers and value.is_floating_point())
    }
