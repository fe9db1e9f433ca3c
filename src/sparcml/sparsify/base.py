"""Base class, selection and registry of the sparsifiers.

A sparsifier is a frozen dataclass of settings that selects entries of a vector. It is one file in
this folder: the class declares a name and a number, which registers it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .. import buffer_pool, kernels
from ..registry import Registry, short_repr
from ..validation import check_integer, check_ratio
from .vector import Host, as_source

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..stream import Stream
    from .vector import Source

    Vector = NDArray[Any]  # float32 or float64


@dataclass(frozen=True)
class Selection:
    """Result of `Sparsifier.select_with_residual`.

    Attributes:
        sent: The selected entries.
        residual: The corrected gradient minus `sent`.
        squared_norm: Squared norm of the corrected gradient (residual + gradient). It is not
            finite if the input has a NaN or an infinity, so it serves as a check of the input.
    """

    sent: Stream
    residual: Vector
    squared_norm: float


SPARSIFIERS: Registry[type[Sparsifier]] = Registry("sparsifier")


class Sparsifier(ABC):
    """Selector of the entries of a vector that are sent; subclasses are frozen dataclasses.

    Attributes:
        name: Name on the command line and in tables. A class that defines it is registered.
        number: Fixed position in the registry.
        option: Placeholder of the command line argument after the name, such as "RATIO".
        published_without_feedback: Whether the method is used without error feedback although
            it is biased.
        planning_cost: Nanoseconds per value that the planner adds for the selection.
    """

    name: ClassVar[str]
    number: ClassVar[int]
    option: ClassVar[str] = "RATIO"
    published_without_feedback: ClassVar[bool] = False
    planning_cost: ClassVar[float] = 0.0

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "name" in cls.__dict__:
            SPARSIFIERS.register(cls.name, cls.number, cls)

    def __str__(self) -> str:
        return short_repr(self)

    @classmethod
    def from_option(cls, text: str) -> Sparsifier:
        """Build an instance from the part after the colon of a specification such as topk:0.01.

        Raises:
            ValueError: If the text is not a valid argument.
        """
        if text:
            raise ValueError(f"{cls.name}: argument must be empty, got {text!r}")
        return cls()

    @classmethod
    def examples(cls) -> tuple[Sparsifier, ...]:
        """Return instances that the test rosters run."""
        return (cls(),)

    @classmethod
    def planned(cls) -> tuple[Sparsifier, ...]:
        """Return instances that get rows in the planner."""
        return ()

    @property
    def label(self) -> str:
        """Name in the tables of the planner."""
        return type(self).__name__

    @property
    @abstractmethod
    def biased(self) -> bool:
        """Whether the selection differs from the vector on average; then use error feedback."""

    @property
    def shared_indices(self) -> bool:
        """Whether all ranks select the same indices, so that these need not be sent."""
        return False

    def for_error_feedback(self) -> Sparsifier:
        """Return the sparsifier to combine with error feedback."""
        return self

    @abstractmethod
    def count(self, size: int) -> int | None:
        """Return the number of entries selected from `size` values; None if it depends on them."""

    @abstractmethod
    def select_from(self, source: Source, seed: int, state: NDArray[np.float64]) -> Stream:
        """Return the selection; `state` comes from `initial_state` and is updated in place."""

    def initial_state(self) -> NDArray[np.float64]:
        """Return the state that callers keep between calls; empty for most sparsifiers."""
        return np.empty(0)

    def select(self, vector: Any, seed: int = 0) -> Stream:
        """Select entries of a vector.

        Args:
            vector: A NumPy array (flattened in C order) or a dense torch tensor, of float32,
                float64, float16 or bfloat16. Only the selection of a tensor on another device
                is copied to the host.
            seed: Random seed; sparsifiers without randomness ignore it.

        Returns:
            The selected entries, as float64 if the vector is float64 and as float32 otherwise.
        """
        return self.select_from(as_source(vector), seed, self.initial_state())

    def select_with_residual(
        self,
        residual: Vector,
        gradient: Vector,
        *,
        seed: int = 0,
        state: NDArray[np.float64] | None = None,
        out: Vector | None = None,
        scale: float = 1.0,
        velocity: kernels.Velocity | None = None,
    ) -> Selection:
        """Select from the corrected gradient, scale * residual + gradient, and update the residual.

        Args:
            residual: Residual of earlier steps: a contiguous vector of float32 or float64.
            gradient: Gradient, of the same size and dtype.
            seed: Random seed; sparsifiers without randomness ignore it.
            state: Result of `initial_state`, updated in place; a new one by default.
            out: Array that receives the new residual. It may be `residual`, and must not overlap
                the inputs otherwise. A new array by default.
            scale: Factor of the residual, if the learning rate has changed.
            velocity: Momentum whose term replaces the gradient; its `out` receives the new one.
        """
        state = self.initial_state() if state is None else state
        out = checked_out(residual, gradient, out)
        if velocity is not None:
            _check_velocity(velocity, residual, gradient, out)
        return self._select_into(residual, gradient, out, seed, state, scale, velocity)

    def _select_into(
        self,
        residual: Vector,
        gradient: Vector,
        out: Vector,
        seed: int,
        state: NDArray[np.float64],
        scale: float,
        velocity: kernels.Velocity | None,
    ) -> Selection:
        """Select with checked arguments; subclasses may use a fused kernel."""
        squared_norm = kernels.add_residual(residual, gradient, out, scale, velocity)
        stream = self.select_from(Host(out), seed, state)
        subtract(out, stream)
        return Selection(stream, out, squared_norm)


def checked_out(residual: Vector, gradient: Vector, out: Vector | None) -> Vector:
    """Return the array of the new residual, after checks of all three vectors."""
    _check_vector("residual", residual, residual)
    _check_vector("gradient", gradient, residual)
    if out is None:
        return buffer_pool.empty(residual.size, residual.dtype)
    _check_vector("out", out, residual)
    if not out.flags.writeable:
        raise ValueError("select_with_residual: out must be writable")
    if np.may_share_memory(out, gradient):  # exact, as all are contiguous
        raise ValueError("select_with_residual: out must not overlap the gradient")
    if np.may_share_memory(out, residual) and out.ctypes.data != residual.ctypes.data:
        raise ValueError(
            "select_with_residual: out must be the residual itself or not overlap it"
        )
    return out


def _check_vector(name: str, x: Vector, residual: Vector) -> None:
    """Check that x is a contiguous vector with the size and dtype of the residual."""
    if not isinstance(x, np.ndarray):
        raise TypeError(
            f"select_with_residual: {name} must be a NumPy vector of float32 or float64, got "
            f"{type(x).__name__}"
        )
    if x.dtype not in (np.float32, np.float64) or x.ndim != 1:
        raise TypeError(
            f"select_with_residual: {name} must be a vector of float32 or float64, got "
            f"{x.dtype} of {x.ndim} dimensions"
        )
    if (x.size, x.dtype) != (residual.size, residual.dtype):
        raise ValueError(
            f"select_with_residual: {name} must have {residual.size} values of {residual.dtype} as "
            f"residual has, got {x.size} of {x.dtype}"
        )
    if not x.flags.c_contiguous:
        raise ValueError(
            f"select_with_residual: {name} must be contiguous; use np.ascontiguousarray"
        )


def _check_velocity(velocity: kernels.Velocity, *others: Vector) -> None:
    _check_vector("velocity.u", velocity.u, others[0])
    _check_vector("velocity.out", velocity.out, others[0])
    if any(np.may_share_memory(velocity.out, x) for x in others):
        raise ValueError("select_with_residual: velocity.out must not overlap the others")


def subtract(corrected: Vector, sent: Stream) -> None:
    """Subtract the sent entries in place; values sent unchanged leave zero, NaN too."""
    indices, values = sent.pairs()
    selected = corrected.reshape(-1, sent.block)[indices].reshape(-1)
    bits = f"u{corrected.itemsize}"
    residual = np.zeros_like(selected)
    changed = selected.view(bits) != values.view(bits)
    with np.errstate(invalid="ignore"):
        np.subtract(selected, values, out=residual, where=changed)
    kernels.scatter_assign(corrected, indices, residual, sent.block)


def parse_number(name: str, option: str, text: str) -> float:
    """Return the number of a specification such as topk:0.01."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{name}: {option} must be a number, got {text!r}") from None


def check_ratio_or_k(owner: Any) -> None:
    """Check that exactly one of `ratio` and `k` is given, with 0 < ratio <= 1 or k >= 1."""
    name, ratio, k = type(owner).__name__, owner.ratio, owner.k
    if (ratio is None) == (k is None):
        raise ValueError(
            f"{name}: exactly one of ratio and k must be given, got {ratio=}, {k=}"
        )
    check_ratio(owner)
    check_integer(owner, "k", optional=True, minimum=1)


def count_entries(ratio: float | None, k: int | None, size: int) -> int:
    """Return k, or size * ratio rounded half up and at least 1; never more than size."""
    if k is None:
        assert ratio is not None
        k = max(1, math.floor(size * ratio + 0.5))
    return min(k, size)
