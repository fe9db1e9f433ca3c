"""Handles: what compress and wrap return, with state, statistics and a change of method."""

from __future__ import annotations

import io
import math
import weakref
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import torch

from ..aggregate import as_method
from ..aggregate.frozen_adam import FrozenAdam
from .adam_updates import AdamUpdates, with_settings
from .checkpoint import consolidated_state, restore, saved_state
from .learning_rates import LearningRates
from .recommended import RECOMMENDED, check_optimizer, recommended_for, warn_once
from .tensors import plain_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from torch import Tensor

    from ..aggregate import Method
    from ..quantize import Quantizer
    from ..sparsify import Sparsifier
    from .buckets import Layout
    from .reducer import GradientReducer
    from .stats import Entries, Stats


class Handle(ABC):
    """Controls the gradient compression of a model.

    Args:
        reducer: Averages the gradients.
        names: Names of the parameters.
        optimizer: The optimizer, if it is known.
    """

    def __init__(
        self,
        reducer: GradientReducer,
        names: Mapping[Tensor, str],
        optimizer: torch.optim.Optimizer | None = None,
    ) -> None:
        self._reducer, self._optimizer = reducer, optimizer
        self._updates: AdamUpdates | None = None
        self._step_hooks: list[Any] = []
        if optimizer is not None:
            reducer.rates = LearningRates(optimizer, reducer, names)
        if isinstance(optimizer, torch.optim.Adam):
            self._updates = updates = AdamUpdates(optimizer, reducer, names)
            reducer.local = lambda: updates.local
        self._logged: Stats | None = None
        self._shapes = shapes_of(names)

    @property
    def method(self) -> Method:
        """Current aggregation method."""
        return self._reducer.method

    @property
    def rank(self) -> int:
        """Rank of this process."""
        return self._reducer.comm.rank

    @property
    def steps(self) -> int:
        """Number of completed steps."""
        return self._reducer.step

    def change(self, method: Method | Quantizer | Sparsifier | str) -> None:
        """Use another method from the next step on. All ranks must call it.

        The residual is kept.

        Args:
            method: An aggregation method, or a quantizer or sparsifier, with error feedback
                around it, or "recommended".
        """
        if isinstance(method, str) and method == RECOMMENDED:
            method = recommended_for("change", self._optimizer)
        new = as_method("change", method)
        if isinstance(new, FrozenAdam):
            new = with_settings("change", new, self._optimizer)

        def change() -> None:
            if self._updates is not None:
                self._updates.release()
            self._reducer.change(new, self._shapes)

        self._between_steps(change)
        if self._optimizer is not None:
            check_optimizer("change", new, self._optimizer, stacklevel=3)
        warn_if_small(new, self._shapes, self._reducer.excluded, stacklevel=3)

    def _coverage(self) -> str:
        """Return how much of the model is compressed."""
        return coverage(self.method, self._shapes, self._reducer.excluded)

    def _choices(self) -> Entries:
        """Return the ratio or the bits of each parameter, if the method chooses them."""
        choices = self.method.describe(self._reducer.state)
        text = ", ".join(f"{name} {value:.3g}" for name, value in sorted(choices.items()))
        return [("chosen", text)] if text else []

    def state_dict(self, *, consolidate: bool = False) -> dict[str, Any]:
        """Return the state of this rank, to be saved with `torch.save` after a step.

        It consists of tensors, numbers and strings and loads with `weights_only=True`. Later
        steps do not modify it.

        Args:
            consolidate: Return one state for any world size, equal on all ranks. Collective.
        """
        build = consolidated_state if consolidate else saved_state
        layout = self._get_layout()
        state: dict[str, Any] = self._between_steps(
            lambda: build(self._reducer, layout, self._shapes)
        )
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from a state of this rank, or from a consolidated one.

        With the method of the saved state, training continues bit for bit; another method
        takes over the residual.

        Raises:
            ValueError: If the state is of another rank, world size or model, or of `TopKAdam`
                after its freeze, which only `change` can leave.
        """
        reducer = self._reducer
        arrays = restore(state, reducer.comm, reducer.method, self._shapes)

        def load() -> None:
            reducer.state, reducer.norm = arrays, float(state["norm"])

        self._between_steps(load)
        self._set_layout([tuple(map(plain_name, names)) for names in state["layout"]])

    @property
    @abstractmethod
    def stats(self) -> Stats:
        """Bytes, seconds and norms of this rank since the start."""

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

    @abstractmethod
    def explain(self) -> str:
        """Return a description of how gradients are averaged, with advice."""

    def close(self) -> None:
        """Stop the threads and close the connections; no step may follow."""
        for hook in self._step_hooks:
            hook.remove()
        self._reducer.comm.close()

    def __repr__(self) -> str:
        reducer = self._reducer
        return f"Handle({self.method}, step={reducer.step}, ranks={reducer.comm.size})"

    @abstractmethod
    def _between_steps(self, work: Callable[[], Any]) -> Any:
        """Run a function while no step uses the communicator, and return its result."""

    @abstractmethod
    def _get_layout(self) -> Layout:
        """Return the groups of gradients that are averaged together."""

    @abstractmethod
    def _set_layout(self, layout: Layout) -> None:
        """Average these groups of gradients together from the next step on."""


def shapes_of(names: Mapping[Tensor, str]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of parameters by name."""
    return {name: tuple(p.shape) for p, name in names.items()}


def coverage(
    method: Method, shapes: Mapping[str, tuple[int, ...]], excluded: Collection[str]
) -> str:
    """Return how much of a model is compressed."""
    sizes, total = _compressed(method, shapes, excluded), map(math.prod, shapes.values())
    values = sum(total)
    return (
        f"{len(sizes)} of {len(shapes)} parameters, {sum(sizes):,} of {values:,} values "
        f"({sum(sizes) / max(1, values):.0%})"
    )


def warn_if_small(
    method: Method,
    shapes: Mapping[str, tuple[int, ...]],
    excluded: Collection[str],
    stacklevel: int,
) -> None:
    """Warn on one rank if the method compresses nothing."""
    if method.is_exact or _compressed(method, shapes, excluded) or not shapes:
        return
    below = getattr(method, "dense_below", None)
    limit = f"have at most {below:,} values (dense_below)" if below else "are small"
    warn_once(
        f"sparcml.torch: {method} compresses {coverage(method, shapes, excluded)}: parameters "
        f"that are excluded, have one dimension or {limit} are sent uncompressed; for this "
        f"model plain DDP is as good",
        stacklevel + 1,
    )


def _compressed(
    method: Method, shapes: Mapping[str, tuple[int, ...]], excluded: Collection[str]
) -> list[int]:
    """Return the number of values of each parameter that a method compresses."""
    return [
        math.prod(shape)
        for name, shape in shapes.items()
        if name not in excluded and method.compresses_shape(name, shape)
    ]


def weak(method: Callable[..., None]) -> Callable[..., None]:
    """Return a function that calls a bound method while its object exists.

    Python's garbage collector does not see references from a parameter to its hooks.
    """
    reference = weakref.WeakMethod(method)

    def call(*args: Any) -> None:
        bound = reference()
        if bound is not None:
            bound(*args)

    return call


class Stateful:
    """Adapter of a handle for `torch.distributed.checkpoint`.

    That package stores one value per key and treats equal keys of two ranks as the same value.
    Every rank's state therefore has its own key and is a single value, because a handle
    before its first step does not know the tensors of the saved one.

    Args:
        handle: A handle from `compress` or `wrap`.
        consolidate: Save one state for any world size.
    """

    def __init__(self, handle: Handle, *, consolidate: bool = False) -> None:
        self._handle, self._consolidate = handle, consolidate
        self._key = "all" if consolidate else f"rank{handle.rank}"

    def state_dict(self) -> dict[str, Any]:
        """Return the state as the bytes of a `torch.save` file."""
        file = io.BytesIO()
        torch.save(self._handle.state_dict(consolidate=self._consolidate), file)
        return {self._key: file.getvalue()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from the bytes that `state_dict` returned."""
        saved = torch.load(io.BytesIO(state[self._key]), weights_only=True)
        self._handle.load_state_dict(saved)
