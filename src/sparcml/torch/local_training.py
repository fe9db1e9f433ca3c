"""Local training of a model: a context manager around an unchanged loop."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any, ClassVar

from ..communicator.collective_errors import aborting
from ..costs import ring_nbytes
from ..local.state import STEP
from .agreement import open_communicator, reporting_errors
from .closures import after_gradients
from .decentralized import Decentralized
from .local_arguments import build_settings, check_arguments, check_scaler, check_unused
from .local_checkpoint import EVERY_RANK, restored_state, saved_state
from .optimizer_handle import OptimizerHandle
from .optimizer_steps import OptimizerSteps
from .replica import Replica
from .running_buffers import RunningBuffers
from .synchronous_start import SynchronousStart

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch

    from .. import local
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
        optimizer: Optimizer of all its parameters, or a wrapper such as Accelerate's around it.
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
            self._given = frozenset(settings)
            self.settings = build_settings(self.form, sync_every, method, settings)
            self._replica = Replica(name, model, optimizer, buffers, optimizer_state)
            self._check_optimizer(self._replica.optimizer)
            self._start = SynchronousStart(
                name, synchronous_steps, synchronous_method, self._replica
            )
            self._state = self.settings.init(self._replica.read())
        arguments = {
            "settings": str(self.settings),
            **self._replica.description,
            "broadcast": broadcast,
            "synchronous start": (synchronous_steps, str(self._start.method)),
        }
        self._comm = open_communicator(name, comm, group, arguments, timeout)
        if broadcast:
            self._replica.broadcast(self._comm)
            self._state = self.settings.init(self._replica.read())
        self.optimizer = optimizer
        self._watch(optimizer)

    @property
    def steps(self) -> int:
        """Number of completed steps of the optimizer."""
        return self._start.made + int(self._state[STEP])

    def finish(self) -> None:
        """Complete the round now, so that all ranks have the same parameters. Collective.

        The end of the `with` block calls it.
        """
        self._check_open()
        start = time.perf_counter()
        x = self._replica.read()
        x, self._state = self.settings.finish(self._comm, x, self._state)
        self._replica.write(x)
        self._replica.average(self._comm)
        self._count(start)

    def shared(self) -> torch.nn.Module:
        """Return a copy of the model with the shared parameters, for evaluation.

        They are those of the last outer step, the same bits on all ranks. Buffers are those of this
        rank. `SPARTA` has no shared model; use `averaged`.
        """
        return self._replica.copy_with(
            self.settings.shared(self._replica.read(), self._state)
        )

    def averaged(self) -> torch.nn.Module:
        """Return a copy of the model with the mean of all ranks. Collective.

        Parameters and floating-point buffers are averaged.
        """
        self._check_open()
        x = self.settings.averaged(self._comm, self._replica.read())
        model = self._replica.copy_with(x)
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
        comm = self._comm
        if not consolidate:
            saved = saved_state(comm.rank, comm.size, self.settings, self._state)
            return {**saved, "start": self._start.saved()}
        self._check_open()
        x, state = self.settings.consolidate(comm, self._replica.read(), self._state)
        saved = saved_state(EVERY_RANK, comm.size, self.settings, state)
        saved["start"] = self._start.saved(comm)
        return {**saved, **self._replica.consolidate(comm, x)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from a state of this rank, or from a consolidated one. All ranks call it.

        A consolidated state also sets the parameters, the buffers and the optimizer's state.

        Raises:
            ValueError: If the state is of another rank, world size, method or model.
        """
        name, size = type(self).__name__, self._replica.parameters.size
        restored = restored_state(name, state, self._comm, self.settings, size)
        self._start.restore(state["start"])
        self._state = restored
        if state["rank"] == EVERY_RANK:
            self._replica.load(state)
        else:
            self._replica.undo_broadcast()

    def __repr__(self) -> str:
        return f"{self.settings}, step={self.steps}, ranks={self._comm.size}"

    def _check_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Raise an error if the method cannot work with this optimizer."""

    def _outer_lr(self) -> float | None:
        """Return the outer learning rate of this round; None is that of the settings."""
        return None

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        with aborting(self._comm):
            check_scaler(type(self).__name__, self._comm.size)
            self._start.check_optimizer(optimizer)
        if not self._start:
            return None
        return after_gradients(args, kwargs, self._average_gradients)

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        del optimizer, args, kwargs
        start = time.perf_counter()
        with aborting(self._comm):
            self._replica.end_step(type(self).__name__)
        exchanges = self._end_synchronous_step() if self._start else self._end_step()
        dense = ring_nbytes(self._comm.size, self._replica.parameters.nbytes)
        self._count(start, steps=1, exchanges=exchanges, dense_bytes=int(dense))

    def _average_gradients(self) -> None:
        start = time.perf_counter()
        self._start.average(self._comm)
        self._count(start)

    def _end_synchronous_step(self) -> int:
        """Count a step of the synchronous start, after which all ranks have the same model."""
        self._start.made += 1
        self._state = self.settings.init(self._replica.read())
        if not self._start:
            self._replica.average_buffers(self._comm)
        return 1

    def _end_step(self) -> int:
        """Complete an inner step, and return the number of merged exchanges."""
        number = int(self._state[STEP]) + 1
        if not self.settings.exchanges(number):
            self._state = {**self._state, STEP: self._state[STEP] + 1}
            return 0
        x = self._replica.read()
        with aborting(self._comm):
            lr = self._outer_lr()
        x, self._state = self.settings.step(self._comm, x, self._state, outer_lr=lr)
        if not self.settings.merges(number):
            return 0
        self._replica.write(x)
        if self.settings.ends_round(number):
            self._replica.average(self._comm)
        return 1
