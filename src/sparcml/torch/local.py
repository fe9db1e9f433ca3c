"""Local training of a model: a context manager around an unchanged loop."""

from __future__ import annotations

import contextlib
import copy
import itertools
import time
import warnings
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch

from .. import local
from ..communicator.communicator import Communicator
from ..costs import ring_nbytes
from ..errors import SparcmlError
from ..local.state import STEP
from .agreement import open_communicator, reporting_errors
from .decentralized import Decentralized
from .flat_parameters import parameters_of, trained_parameters
from .local_checkpoint import (
    EVERY_RANK,
    mean_optimizer_state,
    restored_state,
    saved_state,
)
from .local_stats import LocalStats
from .optimizer_handle import OptimizerHandle
from .running_buffers import RunningBuffers, broadcast_module

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from ..aggregate import Method
    from ..stream.arrays import Values

BUFFERS = ("average", "local")


class LocalTraining:
    """Training in which ranks exchange the change of the model now and then.

        with sparcml.torch.DiLoCo(model, optimizer, sync_every=30) as training:
            for x, y in loader:
                optimizer.zero_grad()
                loss_fn(model(x), y).backward()
                optimizer.step()

    The model is not wrapped, and not in DDP. Every `optimizer.step()` counts; after `sync_every` of
    them the ranks exchange. The state of the optimizer stays on its rank. Creation is collective;
    all ranks must make the same number of steps. At the end of the block the last round is
    completed, so all ranks leave with the same parameters.

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
        broadcast: Start with the parameters and buffers of rank 0 on all ranks.
        timeout: Seconds to wait for a rank, as for `Decentralized`.
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
        broadcast: bool = True,
        timeout: float | None = None,
        **settings: Any,
    ) -> None:
        name = type(self).__name__
        with (
            contextlib.nullcontext() if comm is not None else reporting_errors(name, group)
        ):
            _check_arguments(name, optimizer, comm, group, buffers)
            self._follows_lr = self.form is local.DeMo and "outer_lr" not in settings
            self.settings = _build(self.form, sync_every, method, settings)
            parameters = trained_parameters(
                name, model, optimizer, other="pass its module instead: model.module"
            )
            shapes = {n: shape for n, shape, _ in parameters.layout}
            state = self.settings.init(_by_name(parameters.read(), shapes))
        self._running = RunningBuffers(model)
        arguments = {
            "settings": str(self.settings),
            "parameters": parameters.layout,
            "buffers": (buffers, self._running.layout),
            "broadcast": broadcast,
        }
        self._comm = open_communicator(name, comm, group, arguments, timeout)
        if broadcast:
            broadcast_module(self._comm, model)
            state = self.settings.init(_by_name(parameters.read(), shapes))
        self.optimizer, self._model = optimizer, model
        self._parameters, self._shapes, self._state = parameters, shapes, state
        self._averages_buffers = buffers == "average" and bool(self._running.size)
        self._stats = self._logged = LocalStats()
        self._entered_at: int | None = None
        self._hook: Any = optimizer.register_step_post_hook(self._after_step)

    def __enter__(self) -> Self:
        self._entered_at = self.steps
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self._warn_without_steps()
            self.finish()
        self.close()

    @property
    def steps(self) -> int:
        """Number of completed inner steps."""
        return int(self._state[STEP])

    def finish(self) -> None:
        """Complete the round now, so that all ranks have the same parameters. Collective.

        The end of the `with` block calls it.
        """
        start = time.perf_counter()
        sent = self._sent
        x, self._state = self.settings.finish(self._comm, self._read(), self._state)
        self._write(x)
        if self._averages_buffers:
            self._running.average(self._comm)
        self._stats = self._stats.plus(
            bytes=self._sent - sent, exposed=time.perf_counter() - start
        )

    def shared(self) -> torch.nn.Module:
        """Return a copy of the model with the shared parameters, for evaluation.

        They are those of the last outer step, the same bits on all ranks. Buffers are those of this
        rank. `SPARTA` has no shared model; use `averaged`.
        """
        x = self.settings.shared(self._read(), self._state)
        model = copy.deepcopy(self._model)
        parameters_of(model, self._parameters.names).write(self._flat(x))
        return model

    def averaged(self) -> torch.nn.Module:
        """Return a copy of the model with the mean of all ranks. Collective.

        Parameters and floating-point buffers are averaged.
        """
        x = self.settings.averaged(self._comm, self._read())
        model = copy.deepcopy(self._model)
        parameters_of(model, self._parameters.names).write(self._flat(x))
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
            return saved_state(comm.rank, comm.size, self.settings, self._state)
        x, state = self.settings.consolidate(self._comm, self._read(), self._state)
        saved = saved_state(EVERY_RANK, self._comm.size, self.settings, state)
        saved["parameters"] = {n: torch.from_numpy(np.array(v)) for n, v in x.items()}
        buffers = np.array(self._comm.allreduce(self._running.read(), op="mean"))
        saved["buffers"] = torch.from_numpy(buffers)
        saved["optimizer"] = mean_optimizer_state(self._comm, self.optimizer)
        return saved

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from a state of this rank, or from a consolidated one. All ranks call it.

        A consolidated state also sets the parameters, the buffers and the optimizer's state.

        Raises:
            ValueError: If the state is of another rank, world size, method or model.
        """
        name, size = type(self).__name__, self._parameters.size
        self._state = restored_state(name, state, self._comm, self.settings, size)
        if state["rank"] == EVERY_RANK:
            self._write({n: v.numpy() for n, v in state["parameters"].items()})
            self._running.write(state["buffers"].numpy())
            self.optimizer.load_state_dict(state["optimizer"])

    @property
    def stats(self) -> LocalStats:
        """Steps, bytes and seconds of this rank since the start."""
        return self._stats

    def log(self, writer: Any, step: int | None = None) -> None:
        """Write the statistics of the steps since the last call as scalars.

        Args:
            writer: A torch.utils.tensorboard.SummaryWriter, or an object with `add_scalar`.
            step: Step number of the scalars. Default: the number of completed steps.
        """
        now = self.stats
        for name, value in now.since(self._logged).scalars().items():
            writer.add_scalar(
                f"sparcml/{name}", value, self.steps if step is None else step
            )
        self._logged = now

    def close(self) -> None:
        """Remove the hook from the optimizer and close the connections."""
        if self._hook is not None:
            self._hook.remove()
            self._hook = None
            with contextlib.suppress(SparcmlError):  # an exchange may be in flight
                self._comm.close()

    def __repr__(self) -> str:
        return f"{self.settings}, step={self.steps}, ranks={self._comm.size}"

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        del args, kwargs
        if not self._parameters.is_all_of(optimizer):
            error = RuntimeError(
                f"{type(self).__name__}: the optimizer has parameters that were added later; call "
                f"close() and construct it again after add_param_group"
            )
            self._comm.abort(error)
            raise error
        start, sent, number = time.perf_counter(), self._sent, self.steps + 1
        exchanges = 0
        if self.settings.exchanges(number):
            lr = float(optimizer.param_groups[0]["lr"]) if self._follows_lr else None
            merges = self.settings.merges(number)
            x, self._state = self.settings.step(
                self._comm, self._read(), self._state, outer_lr=lr
            )
            if merges:
                self._write(x)
                exchanges = 1
            if merges and self._averages_buffers and self.settings.ends_round(number):
                self._running.average(self._comm)
        else:
            self._state = {**self._state, STEP: self._state[STEP] + 1}
        dense = ring_nbytes(self._comm.size, self._parameters.nbytes)
        self._stats = self._stats.plus(
            steps=1,
            exchanges=exchanges,
            bytes=self._sent - sent,
            dense_bytes=int(dense),
            exposed=time.perf_counter() - start,
        )

    def _warn_without_steps(self) -> None:
        if self.steps == self._entered_at:
            warnings.warn(
                f"{type(self).__name__}: optimizer must make steps inside the block, got none; "
                f"pass the optimizer whose step() the loop calls",
                RuntimeWarning,
                stacklevel=3,
            )

    def _read(self) -> dict[str, Values]:
        return _by_name(self._parameters.read(), self._shapes)

    def _write(self, x: Mapping[str, Values]) -> None:
        self._parameters.write(self._flat(x))

    def _flat(self, x: Mapping[str, Values]) -> Values:
        flat: Values = np.concatenate([np.ravel(x[n]) for n in self._parameters.names])
        return flat

    @property
    def _sent(self) -> int:
        return self._comm.stats.bytes + self._comm.stats.native_bytes


class LocalSGD(LocalTraining):
    """Model averaging, see `sparcml.local.LocalSGD` and `LocalTraining`."""

    form = local.LocalSGD


class BMUF(LocalTraining):
    """Blockwise model-update filtering, see `sparcml.local.BMUF` and `LocalTraining`."""

    form = local.BMUF


class DiLoCo(LocalTraining):
    """DiLoCo and Streaming DiLoCo, see `sparcml.local.DiLoCo` and `LocalTraining`."""

    form = local.DiLoCo


class SparseLoCo(LocalTraining):
    """SparseLoCo, see `sparcml.local.SparseLoCo` and `LocalTraining`."""

    form = local.SparseLoCo


class DeMo(LocalTraining):
    """DeMo, see `sparcml.local.DeMo` and `LocalTraining`.

    Without `outer_lr`, the length of its step is the learning rate of the optimizer.
    """

    form = local.DeMo


class SPARTA(LocalTraining):
    """SPARTA, see `sparcml.local.SPARTA` and `LocalTraining`."""

    form = local.SPARTA


def _build(
    form: type[local.Method], sync_every: Any, method: Any, settings: dict[str, Any]
) -> local.Method:
    given = {"sync_every": sync_every, "method": method}
    settings = {**{k: v for k, v in given.items() if v is not None}, **settings}
    known = set(form.__dataclass_fields__) & set(vars(form()))
    for name in settings.keys() - known:
        raise TypeError(
            f"{form.__name__}: {name} must be a setting of sparcml.local.{form.__name__}, which "
            f"has {', '.join(sorted(known))}"
        )
    return form(**settings)


def _by_name(values: Values, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Values]:
    sizes = [int(np.prod(shape)) for shape in shapes.values()]
    ends = list(itertools.accumulate(sizes))
    parts = np.split(values, ends[:-1])
    pairs = zip(shapes.items(), parts, strict=True)
    return {name: part.reshape(shape) for (name, shape), part in pairs}


def _check_arguments(
    name: str, optimizer: Any, comm: Any, group: Any, buffers: Any
) -> None:
    if comm is not None and not isinstance(comm, Communicator):
        raise TypeError(f"{name}: comm must be a Communicator, got {comm!r}")
    if comm is not None and group is not None:
        raise ValueError(f"{name}: group must be None if comm is given, got {group!r}")
    if buffers not in BUFFERS:
        raise ValueError(f"{name}: buffers must be {' or '.join(BUFFERS)}, got {buffers!r}")
    for kind in ("pre", "post"):
        hooks = getattr(optimizer, f"_optimizer_step_{kind}_hooks", {}).values()
        users = [getattr(hook, "__self__", None) for hook in hooks]
        if any(
            isinstance(u, LocalTraining | Decentralized | OptimizerHandle) for u in users
        ):
            raise RuntimeError(
                f"{name}: this optimizer is in use already; call close() of the earlier object"
            )
