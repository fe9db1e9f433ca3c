"""Local training of a model: a context manager around an unchanged loop."""

from __future__ import annotations

import contextlib
import copy
import time
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch

from .. import local
from ..costs import ring_nbytes
from ..local.state import STEP
from .agreement import open_communicator, reporting_errors
from .closures import after_closure
from .decentralized import Decentralized
from .flat_parameters import parameters_of, trained_parameters
from .local_arguments import build_settings, check_arguments, check_unused
from .local_checkpoint import (
    EVERY_RANK,
    load_others,
    others_of,
    restored_state,
    saved_state,
)
from .optimizer_handle import OptimizerHandle
from .optimizer_state import average_optimizer_state, mean_optimizer_state
from .optimizer_steps import OptimizerSteps
from .running_buffers import RunningBuffers, broadcast_module
from .synchronous_start import SynchronousStart

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..aggregate import Method
    from ..communicator.communicator import Communicator


class LocalTraining(OptimizerSteps):
    """Training in which ranks exchange the change of the model now and then.

        with sparcml.torch.DiLoCo(model, optimizer, sync_every=30) as training:
            for x, y in loader:
                optimizer.zero_grad()
                loss_fn(model(x), y).backward()
                optimizer.step()

    The model is not wrapped, and not in DDP. Every `optimizer.step()` counts; after `sync_every` of
    them the ranks exchange. Creation is collective; all ranks must make the same number of steps.
    At the end of the block the last round is completed, so all ranks leave with the same
    parameters.

    From random weights, give it a synchronous start: in the first `synchronous_steps`, a quarter of
    all steps or so, gradients are averaged in every step, as in DDP.

    Args:
        model: The model, with parameters of float32 or float64 on one device.
        optimizer: Optimizer of all its parameters.
        sync_every: Inner steps per round. Default: that of the class in `sparcml.local`.
        method: Aggregation method of the changes, for the classes that have one.
        comm: Communicator; a duplicate of it is used. Default: that of `group`.
        group: Process group. Default: the default group; without torch.distributed, the ranks of
            `sparcml.world()`.
        buffers: "average" averages floating-point buffers, such as those of batch norm, at the end
            of each round: a running mean as it is, a running variance through E[x^2]. "local" does
            not.
        optimizer_state: "local": moments and momentum of the optimizer stay on their rank.
            "average" averages them at the end of each round, without compression: AdamW then
            loses less, for two further models of bytes.
        broadcast: Start with the parameters and buffers of rank 0 on all ranks.
        timeout: Seconds to wait for a rank, as for `Decentralized`.
        synchronous_steps: Number of first steps in which gradients are averaged. Rounds start after
            them.
        synchronous_method: Aggregation method of these gradients, such as `sparcml.QSGD(bits=8)`.
            Default: `sparcml.Dense()`.
        **settings: Further settings of the class of the same name in `sparcml.local`, such as
            `outer_lr`, `fragments` and `delay`.

    Attributes:
        optimizer: The optimizer.
        settings: The settings, an object of `sparcml.local`.

    Raises:
        TypeError: If an argument has the wrong type, or the model is a DDP model.
        ValueError: If a setting is wrong, or model and optimizer do not fit each other.
        MismatchError: If ranks pass different arguments, or a rank does not call it.
    """

    form: ClassVar[type[local.Method]]

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        sync_every: int | None = None,
        method: Method | None = None,
        *,
        comm: Communicator | None = None,
        group: Any = None,
        buffers: str = "average",
        optimizer_state: str = "local",
        broadcast: bool = True,
        timeout: float | None = None,
        synchronous_steps: int = 0,
        synchronous_method: Any = None,
        **settings: Any,
    ) -> None:
        name = type(self).__name__
        with (
            contextlib.nullcontext() if comm is not None else reporting_errors(name, group)
        ):
            check_arguments(name, comm, group, buffers, optimizer_state)
            check_unused(name, optimizer, (LocalTraining, Decentralized, OptimizerHandle))
            self._follows_lr = self.form is local.DeMo and "outer_lr" not in settings
            self.settings = build_settings(self.form, sync_every, method, settings)
            parameters = trained_parameters(
                name, model, optimizer, other="pass its module instead: model.module"
            )
            self._start = SynchronousStart(
                name, synchronous_steps, synchronous_method, parameters
            )
            state = self.settings.init(parameters.read_by_name())
        self._running = RunningBuffers(model)
        arguments = {
            "settings": str(self.settings),
            "parameters": parameters.layout,
            "buffers": (buffers, self._running.layout),
            "optimizer state": optimizer_state,
            "broadcast": broadcast,
            "synchronous start": (synchronous_steps, str(self._start.method)),
        }
        self._comm = open_communicator(name, comm, group, arguments, timeout)
        self._own: tuple[Any, Any, Any] | None = None
        if broadcast:
            own, buffers_before = parameters.read_by_name(), self._running.read()
            broadcast_module(self._comm, model)
            state = self.settings.init(parameters.read_by_name())
            # For `load_state_dict`: the model may have been loaded before.
            self._own = (own, buffers_before, parameters.read_by_name())
        self.optimizer, self._model = optimizer, model
        self._parameters, self._state = parameters, state
        self._averages_buffers = buffers == "average" and bool(self._running.size)
        self._averages_optimizer = optimizer_state == "average"
        self._watch(optimizer)

    @property
    def steps(self) -> int:
        """Number of completed steps of the optimizer."""
        return self._start.made + int(self._state[STEP])

    def finish(self) -> None:
        """Complete the round now, so that all ranks have the same parameters. Collective.

        The end of the `with` block calls it.
        """
        start = time.perf_counter()
        x = self._parameters.read_by_name()
        x, self._state = self.settings.finish(self._comm, x, self._state)
        self._parameters.write_by_name(x)
        self._end_round()
        self._count(start)

    def shared(self) -> torch.nn.Module:
        """Return a copy of the model with the shared parameters, for evaluation.

        They are those of the last outer step, the same bits on all ranks. Buffers are those of this
        rank. `SPARTA` has no shared model; use `averaged`.
        """
        x = self.settings.shared(self._parameters.read_by_name(), self._state)
        model = copy.deepcopy(self._model)
        parameters_of(model, self._parameters.names).write_by_name(x)
        return model

    def averaged(self) -> torch.nn.Module:
        """Return a copy of the model with the mean of all ranks. Collective.

        Parameters and floating-point buffers are averaged.
        """
        x = self.settings.averaged(self._comm, self._parameters.read_by_name())
        model = copy.deepcopy(self._model)
        parameters_of(model, self._parameters.names).write_by_name(x)
        RunningBuffers(model).average(self._comm)
        return model

    def state_dict(self, *, consolidate: bool = False) -> dict[str, Any]:
        """Return the state of this rank, to be saved with `torch.save` after a step.

        It consists of tensors, numbers and strings. Save it with the state_dicts of the model
        and the optimizer of this rank; training then continues bit for bit, at any step.

        Args:
            consolidate: Return one state for any world size, equal on all ranks. Collective. It
                contains the parameters, buffers and the optimizer's state, averaged over ranks.
        """
        if not consolidate:
            comm = self._comm
            saved = saved_state(comm.rank, comm.size, self.settings, self._state)
            return {**saved, "start": self._start.saved()}
        x = self._parameters.read_by_name()
        x, state = self.settings.consolidate(self._comm, x, self._state)
        saved = saved_state(EVERY_RANK, self._comm.size, self.settings, state)
        saved["start"] = self._start.saved(self._comm)
        saved["parameters"] = {n: torch.from_numpy(np.array(v)) for n, v in x.items()}
        buffers = np.array(self._comm.allreduce(self._running.read(), op="mean"))
        saved["buffers"] = torch.from_numpy(buffers)
        saved["optimizer"] = mean_optimizer_state(self._comm, self.optimizer)
        saved["others"] = others_of(self._model, self._parameters.names)
        return saved

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from a state of this rank, or from a consolidated one. All ranks call it.

        A consolidated state also sets the parameters, the buffers and the optimizer's state.

        Raises:
            ValueError: If the state is of another rank, world size, method or model.
        """
        name, size = type(self).__name__, self._parameters.size
        restored = restored_state(name, state, self._comm, self.settings, size)
        self._start.restore(state["start"])
        self._state = restored
        if state["rank"] != EVERY_RANK:
            self._restore_own()
        else:
            # First: a shared parameter has several names, of which one is trained.
            load_others(self._model, state.get("others", {}))
            x = {name: value.numpy() for name, value in state["parameters"].items()}
            self._parameters.write_by_name(x)
            self._running.write(state["buffers"].numpy())
            self.optimizer.load_state_dict(state["optimizer"])
        self._own = None

    def _restore_own(self) -> None:
        """Undo the broadcast, if nothing was loaded or computed since."""
        if self._own is None:
            return
        own, buffers, broadcast = self._own
        now = self._parameters.read_by_name()
        if all(np.array_equal(now[name], broadcast[name]) for name in now):
            self._parameters.write_by_name(own)
            self._running.write(buffers)

    def __repr__(self) -> str:
        return f"{self.settings}, step={self.steps}, ranks={self._comm.size}"

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        del optimizer
        if not self._start:
            return None
        changed = after_closure(args, kwargs, self._average_gradients)
        if changed is None:
            self._average_gradients()
        return changed

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        del args, kwargs
        if not self._parameters.is_all_of(optimizer):
            error = RuntimeError(
                f"{type(self).__name__}: the optimizer has parameters that were added later; call "
                f"close() and construct it again after add_param_group"
            )
            self._comm.abort(error)
            raise error
        self._own = None
        start = time.perf_counter()
        exchanges = self._end_synchronous_step() if self._start else self._end_step()
        dense = ring_nbytes(self._comm.size, self._parameters.nbytes)
        self._count(start, steps=1, exchanges=exchanges, dense_bytes=int(dense))

    def _average_gradients(self) -> None:
        start = time.perf_counter()
        self._start.average(self._comm)
        self._count(start)

    def _end_synchronous_step(self) -> int:
        """Count a step of the synchronous start, after which all ranks have the same model."""
        self._start.made += 1
        self._state = self.settings.init(self._parameters.read_by_name())
        if self._averages_buffers and not self._start:
            self._running.average(self._comm)
        return 1

    def _end_step(self) -> int:
        """Complete an inner step, and return the number of merged exchanges."""
        number = int(self._state[STEP]) + 1
        if not self.settings.exchanges(number):
            self._state = {**self._state, STEP: self._state[STEP] + 1}
            return 0
        lr = self._learning_rate() if self._follows_lr else None
        x = self._parameters.read_by_name()
        x, self._state = self.settings.step(self._comm, x, self._state, outer_lr=lr)
        if not self.settings.merges(number):
            return 0
        self._parameters.write_by_name(x)
        if self.settings.ends_round(number):
            self._end_round()
        return 1

    def _learning_rate(self) -> float:
        rates = {float(group["lr"]) for group in self.optimizer.param_groups}
        if len(rates) == 1:
            return rates.pop()
        error = ValueError(
            f"{type(self).__name__}: all parameter groups must have the same learning rate, got "
            f"{', '.join(map(str, sorted(rates)))}; or pass outer_lr="
        )
        self._comm.abort(error)
        raise error

    def _end_round(self) -> None:
        """Average what is not part of the exchange."""
        if self._averages_buffers:
            self._running.average(self._comm)
        if self._averages_optimizer:
            average_optimizer_state(self._comm, self.optimizer)
