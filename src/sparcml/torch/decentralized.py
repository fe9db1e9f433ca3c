"""Decentralized: training in which each rank mixes its model with its neighbours."""

from __future__ import annotations

import contextlib
import copy
from typing import TYPE_CHECKING, Any

import torch

from ..communicator.communicator import Communicator
from ..decentralized import DPSGD, Method, base_graph
from ..decentralized.checks import check_call
from ..errors import SparcmlError
from .agreement import open_communicator, reporting_errors
from .decentralized_checkpoint import describe, restored_state, saved_state
from .flat_parameters import parameters_of, trained_parameters
from .grad_scaler import called_by_scaler
from .model_mixer import ModelMixer
from .optimizer_handle import OptimizerHandle
from .running_buffers import RunningBuffers, broadcast_module
from .step_hooks import register_step_hooks, users_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..decentralized import Topology
    from .decentralized_stats import DecentralizedStats

NAME = "Decentralized"
BUFFERS = ("mix", "local")


class Decentralized(torch.nn.Module):  # type: ignore[misc]
    """A model that every rank trains on its own and mixes with its neighbours.

        model = sparcml.torch.Decentralized(model, optimizer, dec.DPSGD(dec.ring(ranks)))
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()

    Its creation is collective. `optimizer.step()` updates the parameters of this rank, and then
    mixes them: the update is the gradient of the method, with a learning rate of 1. So momentum
    and the moments of Adam stay local. Methods that send the model before the gradient is known
    start in the forward pass, and the exchange overlaps the backward pass.

    All ranks must make the same number of steps, except with `ADPSGD`. The attributes of
    the model itself are in `model.module`.

    Args:
        model: The model, with parameters of float32 or float64 on one device; not in DDP.
        optimizer: Optimizer of all its parameters, or a wrapper such as Accelerate's around it.
        method: A method of `sparcml.decentralized`, for as many ranks as there are. Default:
            `DPSGD(base_graph(ranks))`, in which a rank has at most one neighbour per step, and
            each period of the graph is a full average.
        comm: Communicator; a duplicate of it is used. Default: that of `group`.
        group: Process group. Default: the default group; without torch.distributed, the ranks of
            `sparcml.world()`.
        buffers: "mix" averages floating-point buffers with the neighbours in each step: a running
            mean as it is, a running variance through E[x^2]. "local" does not. Integer buffers,
            buffers that are not part of `state_dict()`, and all buffers with `ADPSGD` stay local.
        broadcast: Start with the parameters and buffers of rank 0 on all ranks.
        overlap: Start the exchange in the forward pass, where the method allows it. The results
            are the same bits without.
        timeout: Seconds to wait for a rank, busy or not. Default: for a rank that is dead or
            stopped SPARCML_TIMEOUT, or 30; for a busy one that of the process group.

    Attributes:
        module: The model of this rank.
        optimizer: The optimizer.

    Raises:
        TypeError: If an argument has the wrong type, or the model is a DDP model.
        ValueError: If method, model and optimizer do not fit each other or the ranks.
        MismatchError: If ranks pass different arguments, or a rank does not call it.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        method: Method | None = None,
        *,
        comm: Communicator | None = None,
        group: Any = None,
        buffers: str = "mix",
        broadcast: bool = True,
        overlap: bool = True,
        timeout: float | None = None,
    ) -> None:
        super().__init__()
        reporting = contextlib.nullcontext() if comm else reporting_errors(NAME, group)
        with reporting:
            _check_arguments(model, optimizer, method, comm, group, buffers)
            parameters = trained_parameters(
                NAME, model, optimizer, other="pass its module instead: model.module"
            )
        self._running = RunningBuffers(model)
        arguments = {
            "method": None if method is None else describe(method),
            "parameters": parameters.layout,
            "buffers": (buffers, self._running.layout),
            "options": (broadcast, overlap),
        }
        self._comm = open_communicator(NAME, comm, group, arguments, timeout)
        if method is None:
            method = DPSGD(base_graph(self._comm.size))
        try:
            check_call(NAME, self._comm, method.topology)
        except ValueError:  # on all ranks
            self._comm.close()
            raise
        if broadcast:
            broadcast_module(self._comm, model)
        self.module, self.optimizer = model, optimizer
        mixed = self._running if buffers == "mix" else None
        self._mixer = ModelMixer(self._comm, method, parameters, mixed, overlap=overlap)
        self._logged = self._mixer.stats
        self._step_hooks = register_step_hooks(
            optimizer, self, self._before_step, self._after_step
        )

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the model of this rank. In training it also starts the exchange."""
        if self._step_hooks and self.training and torch.is_grad_enabled():
            self._mixer.begin()
        return self.module(*args, **kwargs)

    @property
    def method(self) -> Method:
        """Current method."""
        return self._mixer.method

    def averaged(self) -> torch.nn.Module:
        """Return a copy of the model with the mean of all ranks, for evaluation. Collective.

        Parameters and floating-point buffers are averaged; all ranks get the same bits of them.
        """
        self.flush()
        mean, model = self._mixer.mean(), copy.deepcopy(self.module)
        parameters_of(model, self._mixer.parameters.names).write(mean)
        if self._running.size:
            values = self._comm.allreduce(self._running.read(), op="mean")
            RunningBuffers(model).write(values)
        return model

    def consensus_distance(self) -> float:
        """Return the root mean square over ranks of ||x - mean of x||. Collective.

        `stats` has the last result.
        """
        return self._mixer.consensus_distance()

    def flush(self) -> None:
        """Complete the averages in flight of `ADPSGD`. Collective.

        It is needed before `state_dict()` and at the end of the training.
        """
        self._mixer.flush()

    def change_topology(self, topology: Topology) -> None:
        """Use another topology from the next step on. Collective."""
        self._mixer.change_topology(topology)

    def get_extra_state(self) -> dict[str, Any]:
        """Return the state of the method on this rank; `state_dict()` contains it."""
        return saved_state(self._comm, self.method, self._mixer.state)

    def set_extra_state(self, state: Mapping[str, Any]) -> None:
        """Resume from the state of this rank; `load_state_dict()` calls it.

        With the method of the saved state, training continues bit for bit.

        Raises:
            ValueError: If the state is of another rank, world size or model.
        """
        x = self._mixer.parameters.read()
        new = restored_state(state, self._comm, self.method, x)
        self._mixer.cancel()
        self._mixer.state = new

    @property
    def stats(self) -> DecentralizedStats:
        """Bytes, seconds, consensus distance and staleness of this rank since the start."""
        return self._mixer.stats

    def log(self, writer: Any, step: int | None = None) -> None:
        """Write the statistics of the steps since the last call as scalars.

        Args:
            writer: A torch.utils.tensorboard.SummaryWriter, or an object with `add_scalar`.
            step: Step number of the scalars. Default: the number of completed steps.
        """
        now = self.stats
        for name, value in now.since(self._logged).scalars().items():
            writer.add_scalar(f"sparcml/{name}", value, now.steps if step is None else step)
        self._logged = now

    def close(self) -> None:
        """Remove the hooks from the optimizer and close the connections."""
        for hook in self._step_hooks:
            hook.remove()
        self._step_hooks = []
        with contextlib.suppress(SparcmlError):  # a neighbour may not have started the step
            self._mixer.cancel()
        self._comm.close()

    def extra_repr(self) -> str:
        """Return the method and the number of ranks."""
        return f"{self.method}, ranks={self._comm.size}"

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        del args, kwargs
        if not self._mixer.parameters.is_all_of(optimizer):
            self._mixer.fail(
                "the optimizer has parameters that were added after the model was wrapped; "
                "close it and wrap it again after add_param_group"
            )
        if self.method.is_synchronous and called_by_scaler():
            self._mixer.fail(
                "optimizer.step() must not be called by a GradScaler, which skips the steps of "
                "single ranks; use torch.autocast with bfloat16"
            )
        self._mixer.before_update()

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        del optimizer, args, kwargs
        self._mixer.after_update()


def _check_arguments(
    model: Any, optimizer: Any, method: Any, comm: Any, group: Any, buffers: Any
) -> None:
    if method is not None and not isinstance(method, Method):
        raise TypeError(
            f"{NAME}: method must be one of sparcml.decentralized such as "
            f"dec.DPSGD(dec.ring(4)), got {method!r}"
        )
    if comm is not None and not isinstance(comm, Communicator):
        raise TypeError(f"{NAME}: comm must be a Communicator, got {comm!r}")
    if comm is not None and group is not None:
        raise ValueError(f"{NAME}: group must be None if comm is given, got {group!r}")
    if buffers not in BUFFERS:
        raise ValueError(
            f"{NAME}: buffers must be one of {', '.join(BUFFERS)}, got {buffers!r}"
        )
    if isinstance(model, Decentralized) or any(
        isinstance(user, Decentralized | OptimizerHandle) for user in users_of(optimizer)
    ):
        raise RuntimeError(
            f"{NAME}: this model or optimizer is wrapped already; call close() of the earlier one"
        )
