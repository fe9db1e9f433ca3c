"""Handles of DDP models: with a hook, or with "auto", which measures first."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from ..aggregate import Dense
from .auto import MethodSearch, RowUsage
from .closures import after_gradients
from .handle import Handle, weak
from .stats import bucket_advice, collect, table
from .step_hooks import register_step_hooks
from .step_timer import StepTimer, is_training
from .tensors import COMPILED, is_sparse, sparse_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import Tensor
    from torch.nn.parallel import DistributedDataParallel

    from ..aggregate import Method
    from ..quantize import Quantizer
    from ..sparsify import Sparsifier
    from .auto import Decision
    from .buckets import Layout
    from .hook import Hook
    from .reducer import GradientReducer
    from .stats import Stats
    from .step_timer import StepTimes


class Attached:
    """A hook of one DDP model, which dynamo does not trace.

    Deep copies of the model, and models that `torch.load` returns, are plain DDP models: their
    copies of the hook do nothing.

    Args:
        work: Function to call; None in a copy.
    """

    def __init__(self, work: Callable[..., Any] | None = None) -> None:
        self.is_copy = work is None
        self._work = None if work is None else torch.compiler.disable(work)

    def __call__(self, *args: Any) -> Any:
        """Call the function."""
        return None if self._work is None else self._work(*args)

    def __reduce__(self) -> tuple[type[Attached], tuple[()]]:
        return Attached, ()


def register(ddp: DistributedDataParallel, hook: Hook) -> None:
    """Register the communication hook with DDP."""
    before = list(ddp._comm_hooks)
    try:
        ddp.register_comm_hook(Attached(hook), average_bucket)
    except BaseException:
        ddp._comm_hooks = before  # DDP lists it before it refuses it
        raise
    # Without this check, the step after an error would raise an internal error of DDP.
    ddp.register_forward_pre_hook(Attached(lambda ddp, args: hook.check()))  # noqa: ARG005


def average_bucket(state, bucket):  # type: ignore[no-untyped-def] # DDP reads annotations
    """Pass a bucket to the hook; this function is what DDP pickles with a model."""
    return state(bucket)


def discard_copies(ddp: DistributedDataParallel) -> None:
    """Remove the hooks that a copied or loaded model has kept."""
    ddp._comm_hooks = [(h, state) for h, state in ddp._comm_hooks if not _is_copy(state)]
    for number, hook in list(ddp._forward_pre_hooks.items()):
        if _is_copy(hook):
            del ddp._forward_pre_hooks[number]


def _is_copy(hook: object) -> bool:
    return isinstance(hook, Attached) and hook.is_copy


def unwrapped(model: torch.nn.Module) -> DistributedDataParallel:
    """Return the DDP model inside a compiled model, or the model itself."""
    return getattr(model, COMPILED, model)


class DDPHandle(Handle):
    """Handle of a DDP model with a communication hook."""

    def __init__(
        self,
        reducer: GradientReducer,
        hook: Hook,
        names: Mapping[Tensor, str],
        optimizer: torch.optim.Optimizer | None = None,
    ) -> None:
        super().__init__(reducer, names, optimizer)
        self._hook = hook
        if optimizer is not None:
            self._step_hooks = register_step_hooks(
                optimizer, self, self._before_step, self._after_step
            )

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        del optimizer
        if self._updates is None:
            return None
        return after_gradients(args, kwargs, self._exchange)

    def _exchange(self) -> None:
        """Exchange updates in place of gradients, in the second phase."""
        if self._updates is not None and self._updates.frozen:
            self._hook.run(self._updates.exchange)
            self._updates.hide()

    def _after_step(self, *args: Any) -> None:
        del args
        if self._updates is not None:
            self._updates.restore()

    def close(self) -> None:
        """Stop the worker thread and close the connections; no step may follow."""
        self._hook.close()
        super().close()

    @property
    def stats(self) -> Stats:
        """Bytes, seconds and norms of this rank since the start."""
        hook = self._hook
        return collect(
            self._reducer,
            native_bytes=hook.native_bytes,
            exposed=hook.exposed,
            active_seconds=hook.active_seconds,
            buckets=hook.sizes,
        )

    def explain(self) -> str:
        """Return a table of the method, the network and DDP's buckets, with advice."""
        comm = self._reducer.comm
        return table(
            [
                ("method", str(self.method)),
                ("compressed", self._coverage()),
                *self._choices(),
                ("ranks", str(comm.size)),
                ("network", comm.network.source),
                *bucket_advice(self.stats, self.method),
            ]
        )

    def _between_steps(self, work: Callable[[], Any]) -> Any:
        return self._hook.run(work)

    def _get_layout(self) -> Layout:
        return self._hook.layout or self._hook.seen

    def _set_layout(self, layout: Layout) -> None:
        self._hook.layout = layout or None


class AutoDDPHandle(DDPHandle):
    """Handle of a DDP model that is measured before a hook is registered.

    Attributes:
        decision: What was chosen, and why; None while plain DDP is measured, and after
            `change`.
    """

    def __init__(
        self,
        reducer: GradientReducer,
        hook: Hook,
        names: Mapping[Tensor, str],
        ddp: DistributedDataParallel,
        optimizer: torch.optim.Optimizer | None = None,
    ) -> None:
        super().__init__(reducer, hook, names, optimizer)
        self.decision: Decision | None = None
        self._decided = False  # by measurements or by the user
        self._registered = False
        self._timer = StepTimer()
        self._search: MethodSearch | None = None
        self._next: Method | None = None  # after a dense step, which applies the residual
        self._trials: Stats | None = None  # what was sent to compare methods
        self._ddp = ddp
        self._tables = sparse_tables(ddp.module) & self._shapes.keys()
        self._rows_used = dict.fromkeys(self._tables, 0)  # in the last step
        self._observers = [ddp.register_forward_pre_hook(Attached(self._tick))]
        count_rows = weak(self._count_rows)
        self._observers += [
            parameter.register_hook(partial(count_rows, name))
            for parameter, name in names.items()
            if name in self._tables
        ]

    def explain(self) -> str:
        """Return the measurements, the decision and its reason."""
        if self.decision is None:
            if self._decided:
                return super().explain()
            return f"auto: still measuring plain DDP, {self._timer.progress}"
        text = f"auto: {self.decision}"
        if not self._decided:
            text += f"\n\nnow measuring {self.method}: {self._timer.progress}"
        return f"{text}\n\n{super().explain()}" if self._registered else text

    @property
    def stats(self) -> Stats:
        """Bytes, seconds and norms of this rank; with plain DDP, a note that there are none."""
        stats = super().stats.since(self._trials)
        if self._registered:
            return stats
        text = self.explain().partition("\n")[0]
        return replace(stats, note=f"{text}; plain DDP averages the gradients")

    def change(self, method: Method | Quantizer | Sparsifier | str) -> None:
        """Use this method from the next step on. All ranks must call it."""
        super().change(method)
        self.decision = None  # it is not about this method
        self._stop_measuring()
        self._register()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from a state; its residual is applied whatever is decided."""
        super().load_state_dict(state)
        if self._decided and self._reducer.has_residual:
            self._register()

    def _tick(self, ddp: Any, args: Any) -> None:
        del args
        if not is_training(ddp):
            return
        if self._next is not None:
            self._hook.run(partial(self._use, self._next))
        elif self._timer.tick(ddp):
            self._hook.run(self._decide)
            self._timer.restart()
        decision = self.decision
        if decision is None:
            return
        if decision.final and self._next is None:
            self._stop_measuring()
        if decision.method is not None or self._reducer.has_residual:
            self._register()

    def _register(self) -> None:
        if not self._registered:
            self._registered = True
            register(self._ddp, self._hook)

    def _stop_measuring(self) -> None:
        self._decided, self._next = True, None
        for observer in self._observers:
            observer.remove()
        self._observers.clear()

    def _count_rows(self, name: str, gradient: Tensor) -> None:
        self._rows_used[name] = gradient._nnz() if is_sparse(gradient) else len(gradient)

    def _decide(self) -> None:
        """Use the method that the search chooses by the steps since the last choice."""
        before = super().stats.since(self._trials)
        times = self._timer.measure(self._reducer.comm)
        if self._search is None:
            self._search = self._new_search(times)
        else:
            self._search.record(times.step)
        self.decision = self._search.decide()
        self._trials = super().stats.since(before)
        chosen = self.decision.method
        self._use(Dense() if chosen is None else chosen)

    def _use(self, method: Method) -> None:
        """Use a method from this step on; if it cannot keep the residual, from the next one on."""
        waits = self._reducer.has_residual and not method.keeps_residual
        self._next = method if waits else None
        now = Dense() if waits else method
        if now != self.method:
            self._reducer.change(now, self._shapes)

    def _new_search(self, times: StepTimes) -> MethodSearch:
        reducer, shapes = self._reducer, self._shapes
        separate = reducer.excluded | self._tables
        return MethodSearch(
            reducer.comm,
            {n: s for n, s in shapes.items() if n not in separate},
            times,
            {n: RowUsage(shapes[n], used) for n, used in self._rows_used.items()},
            {n: shapes[n] for n in reducer.excluded - self._tables},
            self._optimizer,
        )
