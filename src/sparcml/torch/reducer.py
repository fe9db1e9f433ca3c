"""GradientReducer: averages the gradients of one model and keeps its method's state."""

from __future__ import annotations

import math
import os
import threading
import warnings
import weakref
from dataclasses import fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ..aggregate import Dense
from ..aggregate.error_feedback import return_to_residual
from ..aggregate.state import RESIDUAL, STEP, keys_of, name_of
from ..quantize.code import mix_seed
from ..stream.tensors import on_host
from .clipping import Clip
from .tensors import is_finite, is_sparse, scaled, squares, values_of, zero_gradient

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from typing import Any

    from numpy.typing import NDArray
    from torch import Tensor

    from ..aggregate import Method, State
    from ..communicator.communicator import Communicator

NO_CLIPPING = Clip()


class GradientReducer:
    """Averages gradients, a few at a time, and keeps the residual by parameter.

    A step starts with `begin`, has any number of calls of `average` with different names, and
    ends with `end`, which increases the step count. The state is keyed by the name of the
    parameter, so it does not matter which gradients are averaged together.

    Args:
        comm: The communicator.
        method: Aggregation method.
        excluded: Names of parameters that are not compressed.
        clip: Limits to the norms of gradients.

    Attributes:
        reuses_state: Whether a step may write to the arrays of the state, so that there is
            none to go back to after an error.
        rates: Returns the learning rates by name; None if they are unknown.
        local: Names of gradients that stay those of this rank.
        state: State of the method, by name.
        norm: Norm of the mean gradient of the last step.
        applied: Number of steps since the start.
        skipped: Number of steps that were skipped because gradients were not finite.
        gradient_bytes: Bytes of all gradients since the start.
    """

    def __init__(
        self,
        comm: Communicator,
        method: Method,
        excluded: frozenset[str] = frozenset(),
        clip: Clip = NO_CLIPPING,
    ) -> None:
        self.comm, self.method = comm, method
        self.excluded, self._clip = excluded, clip
        self.state: State = method.init({})
        self.norm = 0.0
        self.applied = self.skipped = self.gradient_bytes = 0
        self._squares = 0.0
        self._scale: float | None = None
        self._finite = True
        self._changes: dict[str, NDArray[Any] | None] = {}  # None removes an entry
        self._own: State = {}  # arrays of earlier steps that nobody else has
        self.reuses_state = False
        self.rates: Callable[[], Mapping[str, float]] | None = None
        self.local: Callable[[], Collection[str]] = tuple
        # The connections and threads of a model end with it, also without `close`.
        weakref.finalize(self, _close_later, comm, os.getpid()).atexit = False

    @property
    def step(self) -> int:
        """Number of completed steps, those before a resumption included."""
        return int(self.state[STEP])

    @property
    def has_residual(self) -> bool:
        """Whether the state has a residual."""
        return any(True for _ in keys_of(self.state, RESIDUAL))

    @property
    def clips(self) -> bool:
        """Whether gradients are clipped."""
        return self._clip != NO_CLIPPING

    def compresses(self, name: str, shape: tuple[int, ...]) -> bool:
        """Return whether the method compresses dense gradients of a parameter."""
        return name not in self.excluded and self.method.compresses_shape(name, shape)

    def begin(self, scale: float | None = None) -> None:
        """Start a step.

        Args:
            scale: Loss scale of a GradScaler. Gradients that are not finite are then no
                error: the step is skipped and leaves the state unchanged.
        """
        self._scale, self._squares, self._finite = scale, 0.0, True
        self._changes = {}

    def count(self, gradients: Iterable[Tensor]) -> None:
        """Add gradients to `gradient_bytes`, also those that are averaged elsewhere."""
        stored = map(values_of, gradients)
        self.gradient_bytes += sum(v.numel() * v.element_size() for v in stored)

    def average(self, gradients: Mapping[str, Tensor], index: int = 0) -> dict[str, Tensor]:
        """Return the means over all ranks. Collective.

        Gradients may be overwritten by their means.

        Args:
            gradients: Gradients by name. Dense ones are averaged by the method, sparse ones
                without loss.
            index: Index of the call within the step; random numbers depend on it.
        """
        local = self.local()
        own = {name: g for name, g in gradients.items() if name in local}
        gradients = {name: g for name, g in gradients.items() if name not in own}
        ready = {name: self._prepare(g) for name, g in gradients.items()}
        rows = {name: g for name, g in ready.items() if is_sparse(g)}
        dense = {n: g for n, g in ready.items() if n not in rows}
        exact: dict[str, Tensor] = {}
        if not self.method.returns_mean:  # excluded parameters get a mean all the same
            exact = {n: g for n, g in dense.items() if n in self.excluded}
        others = {n: g for n, g in dense.items() if n not in exact}
        lossless = Dense(nonfinite=self.method.nonfinite)
        means = {
            **self._aggregate(lossless, rows),
            **self._aggregate(lossless, exact),
            **self._aggregate(seeded(self.method.for_gradients(), index), others),
        }
        if self._clip.norm is not None:
            self._squares += math.fsum(squares(mean) for mean in means.values())
        return own | {n: self._rescale(means[n], g) for n, g in gradients.items()}

    def average_exactly(self, gradients: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the exact means over all ranks. Collective."""
        return self._aggregate(Dense(nonfinite=self.method.nonfinite), gradients)

    def exchange(self, gradients: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the updates of a method that returns updates. Collective."""
        return self._aggregate(self.method, gradients)

    def end(self) -> bool:
        """Complete the step. Collective if there is a loss scale.

        Returns:
            Whether the gradients of all ranks were finite; if not, the state is unchanged.
        """
        if self._scale is not None:
            nonfinite = np.array([not self._finite], np.float32)
            self._finite = not self.comm.allreduce(nonfinite, op="max")[0]
        if self._finite:
            self._commit()
            self.state[STEP] = self.state[STEP] + 1
            self.applied += 1
            self.norm = math.sqrt(self._squares)
        else:
            self.skipped += 1
        self._changes = {}
        return self._finite

    def check_finite(self, mean: Tensor) -> None:
        """Skip the step if a mean that was computed elsewhere is not finite."""
        if not is_finite(mean):
            self._finite = False

    def restore_residual(self, name: str, mean: Tensor) -> None:
        """Add a mean of the last step that was not applied to the residuals of all ranks."""
        unscaled = scaled(mean.detach(), 1.0 / (self._scale or 1.0))
        return_to_residual(self.state, name, on_host(unscaled).reshape(-1))

    def share_state(self) -> State:
        """Return the state for others, whose arrays later steps do not change."""
        self._own = {}
        return self.state

    def change(self, method: Method, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Use another method, which takes over the residual."""
        names = {n for k in self.state if (n := name_of(k)) is not None}
        self.state = method.init({n: shapes[n] for n in sorted(names)}, self.state)
        self.method = method

    def _prepare(self, gradient: Tensor) -> Tensor:
        """Return the gradient without the loss scale, and clipped."""
        gradient = gradient.detach()
        if self._scale is not None and not is_finite(gradient):
            self._finite = False  # the results of this step are discarded
            return scaled(zero_gradient(gradient), 1)
        factor = 1.0 if self._scale is None else 1.0 / self._scale
        if self.clips:
            own = math.sqrt(squares(gradient)) * factor if self._clip.each else 0.0
            if math.isfinite(own):
                factor *= self._clip.factor(self.norm, own)
        return scaled(gradient, factor)

    def _aggregate(self, method: Method, given: Mapping[str, Tensor]) -> dict[str, Tensor]:
        if not given:
            return {}
        # Methods do not compress vectors.
        flat = {n: g.reshape(-1) if n in self.excluded else g for n, g in given.items()}
        before = {k: v for k, v in self.state.items() if name_of(k) in given}
        own = all(self._own.get(k) is v for k, v in before.items())
        means, after = method.aggregate(
            self.comm,
            flat,
            {**before, STEP: self.state[STEP]},
            lr=None if self.rates is None else self.rates(),
            overwrite=True,
            overwrite_state=self.reuses_state and self._scale is None and own,
        )
        self._changes |= dict.fromkeys(before.keys() - after.keys())
        self._changes |= {k: v for k, v in after.items() if k != STEP}
        if self._scale is None:
            self._commit()
        return {
            n: mean.reshape(given[n].shape) if n in self.excluded else mean
            for n, mean in means.items()
        }

    def _commit(self) -> None:
        """Write the changes of this step to the state."""
        for k, value in self._changes.items():
            if value is None:
                self.state.pop(k, None)
                self._own.pop(k, None)
            else:
                self.state[k] = self._own[k] = value
        self._changes = {}

    def _rescale(self, mean: Tensor, gradient: Tensor) -> Tensor:
        """Return a mean with the loss scale, in the dtype of the gradient."""
        if self._scale is not None:
            mean = scaled(mean, self._scale)
        return mean.to(gradient.dtype)


def _close_later(comm: Communicator, process: int) -> None:
    """Close a communicator, on a thread: its last messages may still be in flight.

    The thread is not a daemon: the process must not end inside a call of gloo.
    """
    if os.getpid() == process:  # and not a forked one, whose parent continues
        threading.Thread(target=comm.close, name="sparcml close").start()


@lru_cache(maxsize=256)
def seeded(method: Method, index: int) -> Method:
    """Return the method with a random seed for this call, if it has a seed."""
    if index == 0 or not any(f.name == "seed" for f in fields(method)):  # type: ignore[arg-type]
        return method
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the method warned when it was created
        return replace(method, seed=mix_seed(method.seed, index))  # type: ignore[type-var, attr-defined]
