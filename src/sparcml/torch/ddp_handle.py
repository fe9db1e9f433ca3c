"""The handles of DDP models: with a hook, or measured first."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from .auto import RowUsage, StepTimer, decide, watching
from .handle import Handle
from .rules import sparse_tables
from .stats import advice, counted
from .tensors import is_sparse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import Tensor
    from torch.nn.parallel import DistributedDataParallel

    from ..aggregate import Method
    from .auto import Decision
    from .buckets import Layout
    from .hook import Hook
    from .reducer import GradientReducer
    from .stats import Stats


def register(model: torch.nn.Module, hook: Hook) -> None:
    """From here on DDP hands its buckets over."""
    ddp = inside(model)
    ddp.register_comm_hook(None, lambda state, bucket: hook(bucket))  # noqa: ARG005
    # After an error DDP's own words would be those of a bug in torch.
    before_forward(model, lambda ddp, args: hook.check())  # noqa: ARG005


def inside(model: torch.nn.Module) -> DistributedDataParallel:
    """The DDP model of one that was compiled, or itself."""
    return getattr(model, "_orig_mod", model)


def before_forward(model: torch.nn.Module, work: Callable[[Any, Any], None]) -> Any:
    """Have it done before each forward pass; it is no part of a compiled graph."""
    ddp = inside(model)
    return ddp.register_forward_pre_hook(
        work if ddp is model else torch.compiler.disable(work)
    )


class DDPHandle(Handle):
    """The compression of a DDP model."""

    def __init__(
        self, reducer: GradientReducer, hook: Hook, names: Mapping[Tensor, str]
    ) -> None:
        super().__init__(reducer, names)
        self._hook = hook

    def close(self) -> None:
        """End the thread and the connections; there is no step after it."""
        self._hook.close()
        super().close()

    @property
    def stats(self) -> Stats:
        """Bytes, seconds and norms of this rank since the start."""
        hook = self._hook
        return counted(
            self._reducer,
            native_bytes=hook.native_bytes,
            exposed=hook.exposed,
            active_seconds=hook.active_seconds,
            buckets=hook.sizes,
        )

    def explain(self) -> str:
        """What is done with the gradients, and what might be better."""
        reducer = self._reducer
        return (
            f"{self.method} on {reducer.comm.size} ranks\n"
            f"network: {reducer.comm.network.source}\nbuckets: {advice(self.stats)}"
        )

    def _between_steps(self, work: Callable[[], Any]) -> Any:
        return self._hook.run(work)

    def _get_layout(self) -> Layout:
        return self._hook.layout or self._hook.seen

    def _set_layout(self, layout: Layout) -> None:
        self._hook.layout = layout or None


class AutoDDPHandle(DDPHandle):
    """The compression of a DDP model that is measured before anything is registered."""

    def __init__(
        self,
        reducer: GradientReducer,
        hook: Hook,
        names: Mapping[Tensor, str],
        model: torch.nn.Module,
    ) -> None:
        super().__init__(reducer, hook, names)
        self.decision: Decision | None = None
        self._decided = False  # by measurements, or by the user
        self._registered = False
        self._timer = StepTimer()
        self._model = model
        self._tables = sparse_tables(inside(model).module) & self._shapes.keys()
        self._used = dict.fromkeys(self._tables, 0)  # rows of each, in the last step
        self._watching = [before_forward(model, self._tick)]
        self._watching += [
            parameter.register_hook(partial(self._note_rows, name))
            for parameter, name in names.items()
            if name in self._tables
        ]

    def explain(self) -> str:
        """What was measured and decided, and why."""
        if self.decision is None:
            if self._decided:
                return super().explain()
            return "auto: still measuring the first steps of plain DDP"
        text = f"auto: {self.decision}"
        return f"{text}\n{super().explain()}" if self._registered else text

    def change(self, method: Method) -> None:
        """Go on with this method, measured or not; all ranks do the same."""
        super().change(method)
        self.decision = None  # it says nothing about this method
        self._go_on(hooked=True)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; what it owes is paid, whatever was or will be decided."""
        super().load_state_dict(state)
        if self._decided:
            self._go_on(hooked=self._reducer.has_residual)

    def _tick(self, ddp: Any, args: Any) -> None:
        del args
        if watching(ddp) and self._timer.tick(ddp):
            self._hook.run(self._decide)
            chosen = self.decision is not None and self.decision.method is not None
            self._go_on(hooked=chosen or self._reducer.has_residual)

    def _go_on(self, *, hooked: bool) -> None:
        """Nothing is measured any more."""
        self._decided = True
        for each in self._watching:
            each.remove()
        self._watching.clear()
        if hooked and not self._registered:
            self._registered = True
            register(self._model, self._hook)

    def _note_rows(self, name: str, gradient: Tensor) -> None:
        self._used[name] = gradient._nnz() if is_sparse(gradient) else len(gradient)

    def _decide(self) -> None:
        reducer, all_shapes = self._reducer, self._shapes
        comm, apart = reducer.comm, reducer.left | self._tables
        shapes = {n: s for n, s in all_shapes.items() if n not in apart}
        left = {n: all_shapes[n] for n in reducer.left - self._tables}
        tables = {n: RowUsage(all_shapes[n], used) for n, used in self._used.items()}
        found = self._timer.measured(comm)
        self.decision = decide(comm, shapes, found, tables, left)
        if self.decision.method is not None:
            reducer.change(self.decision.method, self._shapes)
        comm.stats.reset()
