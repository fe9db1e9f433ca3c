"""The books of one model: a method, what this rank owes by parameter, and the step."""

from __future__ import annotations

import math
import warnings
from dataclasses import fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ..aggregate import Dense, MajorityVote
from ..aggregate.state import RESIDUAL, STEP, key, keys_of, name_of
from ..collectives.base import mixed
from .clipping import Clip
from .tensors import is_finite, is_sparse, scaled, squares, values_of, zero_gradient

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from numpy.typing import NDArray
    from torch import Tensor

    from ..aggregate import Method, State
    from ..communicator.communicator import Communicator

NOTHING_CLIPPED = Clip()


class GradientReducer:
    """Turns gradients into their means, some at a time, and keeps what is not sent.

    A step begins with `begin`, takes any number of `average` with other names each time, and
    ends with `end`: only then does the step count rise. Everything is keyed by the name of the
    parameter, so it does not matter who comes together with whom.

    Attributes:
        left: Names of those that are not compressed.
        state: As the method has it, by name.
        norm: Of the mean gradient of the last step.
        applied: Steps since the start, or the last time a state was loaded, and
        skipped: those that were not made.
        gradient_bytes: Of all gradients so far.
    """

    def __init__(
        self,
        comm: Communicator,
        method: Method,
        left: frozenset[str] = frozenset(),
        clip: Clip = NOTHING_CLIPPED,
    ) -> None:
        self.comm, self.method = comm, method
        self.left, self._clip = left, clip
        self.state: State = method.init({})
        self.norm = 0.0
        self.applied = self.skipped = self.gradient_bytes = 0
        self._squares = 0.0
        self._scale: float | None = None
        self._finite = True
        self._changes: dict[str, NDArray[Any] | None] = {}  # None: paid

    @property
    def step(self) -> int:
        """How many were made."""
        return int(self.state[STEP])

    @property
    def has_residual(self) -> bool:
        """Whether anything is left from earlier steps."""
        return any(True for _ in keys_of(self.state, RESIDUAL))

    @property
    def changes_gradients(self) -> bool:
        """Whether gradients are not taken as they come."""
        return self._clip != NOTHING_CLIPPED

    def begin(self, scale: float | None = None) -> None:
        """A new step.

        Args:
            scale: What a GradScaler has multiplied the loss with. Then gradients that are not
                finite are no error: the step is not made, and leaves no trace.
        """
        self._scale, self._squares, self._finite = scale, 0.0, True
        self._changes = {}

    def count(self, gradients: Iterable[Tensor]) -> None:
        """These have come; some go another way than by `average`."""
        stored = map(values_of, gradients)
        self.gradient_bytes += sum(v.numel() * v.element_size() for v in stored)

    def average(self, gradients: Mapping[str, Tensor], place: int = 0) -> dict[str, Tensor]:
        """The means over all ranks: a collective call.

        Gradients are overwritten: means may be in their place.

        Args:
            gradients: By name; dense ones by the method, sparse ones without loss.
            place: Which of the step's calls it is: it decides, among others, what is
                random.
        """
        ready = {name: self._prepared(g) for name, g in gradients.items()}
        rows = {name: g for name, g in ready.items() if is_sparse(g)}
        votes = isinstance(self.method, MajorityVote)
        exact = {n: g for n, g in ready.items() if n in self.left and n not in rows}
        exact = exact if votes else {}
        rest = {n: g for n, g in ready.items() if n not in rows and n not in exact}
        lossless = Dense(nonfinite=self.method.nonfinite)
        means = {
            **self._aggregate(lossless, rows),
            **self._aggregate(lossless, exact),
            **self._aggregate(seeded(self.method, place), rest),
        }
        if self._clip.norm is not None:
            self._squares += math.fsum(squares(mean) for mean in means.values())
        return {n: self._finished(means[n], g) for n, g in gradients.items()}

    def end(self) -> bool:
        """The step is complete: keep what it leaves. Collective if there is a scale.

        Returns:
            Whether all gradients of all ranks were finite; if not, nothing is kept.
        """
        if self._scale is not None:
            bad = np.array([not self._finite], np.float32)
            self._finite = not self.comm.allreduce(bad, op="max")[0]
        if self._finite:
            self._settle()
            self.state[STEP] = self.state[STEP] + 1
            self.applied += 1
            self.norm = math.sqrt(self._squares)
        else:
            self.skipped += 1
        self._changes = {}
        return self._finite

    def check_finite(self, mean: Tensor) -> None:
        """A mean that was made elsewhere, the same on all ranks: does the step count?"""
        if not is_finite(mean):
            self._finite = False

    def restore_residual(self, name: str, mean: Tensor) -> None:
        """A mean of the last step was not applied: all ranks owe it again."""
        where = key(RESIDUAL, name)
        if where in self.state:  # else it is no debt that was paid
            again = scaled(mean.detach(), 1.0 / (self._scale or 1.0)).cpu().reshape(-1)
            self.state[where] = self.state[where] + again.numpy()

    def change(self, method: Method, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Go on with another method, which owes what this one does."""
        known = {n for k in self.state if (n := name_of(k)) is not None}
        self.state = method.init({n: shapes[n] for n in sorted(known)}, self.state)
        self.method = method

    def _prepared(self, gradient: Tensor) -> Tensor:
        """Unscaled and clipped."""
        gradient = gradient.detach()
        if self._scale is not None and not is_finite(gradient):
            self._finite = False  # what comes of this step is thrown away
            return scaled(zero_gradient(gradient), 1)
        factor = 1.0 if self._scale is None else 1.0 / self._scale
        if self.changes_gradients:
            own = math.sqrt(squares(gradient)) * factor if self._clip.each else 0.0
            if math.isfinite(own):
                factor *= self._clip.factor(self.norm, own)
        return scaled(gradient, factor)

    def _aggregate(self, method: Method, given: Mapping[str, Tensor]) -> dict[str, Tensor]:
        if not given:
            return {}
        # A vector is never compressed.
        flat = {n: g.reshape(-1) if n in self.left else g for n, g in given.items()}
        before = {k: v for k, v in self.state.items() if name_of(k) in given}
        means, after = method.aggregate(
            self.comm, flat, {**before, STEP: self.state[STEP]}, overwrite=True
        )
        self._changes |= dict.fromkeys(before.keys() - after.keys())
        self._changes |= {k: v for k, v in after.items() if k != STEP}
        if self._scale is None:
            self._settle()
        return {
            n: mean.reshape(given[n].shape) if n in self.left else mean
            for n, mean in means.items()
        }

    def _settle(self) -> None:
        for where, value in self._changes.items():
            if value is None:
                self.state.pop(where, None)
            else:
                self.state[where] = value
        self._changes = {}

    def _finished(self, mean: Tensor, given: Tensor) -> Tensor:
        if self._scale is not None:
            mean = scaled(mean, self._scale)
        return mean.to(given.dtype)


@lru_cache(maxsize=256)
def seeded(method: Method, place: int) -> Method:
    """The same method with random numbers of its own, if it has any."""
    if place == 0 or not any(f.name == "seed" for f in fields(method)):  # type: ignore[arg-type]
        return method
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is without feedback has said so
        return replace(method, seed=mixed(method.seed, place))  # type: ignore[type-var, attr-defined]
