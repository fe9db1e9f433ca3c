"""What a sparsifier is: a frozen set of settings that selects entries of a vector."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .. import buffer_pool, kernels
from ..registry import Registry
from .vector import Host, opened

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
        """Entries that are selected of so many values; None if the data decide."""

    @abstractmethod
    def select_from(self, source: Source, seed: int, state: NDArray[np.float64]) -> Stream:
        """The selection; `state` is what `initial_state()` once gave, and is updated."""

    def initial_state(self) -> NDArray[np.float64]:
        """What it carries from call to call, for callers to keep; empty for most."""
        return np.empty(0)

    def select(self, vector: Any, seed: int = 0) -> Stream:
        """The entries that matter.

        Args:
            vector: A NumPy array (flattened in C order) or a dense torch tensor, of
                float32, float64, float16 or bfloat16. Of a tensor that is not in main
                memory only the selection is copied.
            seed: Decides what is random, if anything is.

        Returns:
            Entries of float32, or float64 if the vector is.
        """
        return self.select_from(opened(vector), seed, self.initial_state())

    def select_with_residual(
        self,
        residual: Vector,
        gradient: Vector,
        *,
        seed: int = 0,
        state: NDArray[np.float64] | None = None,
        out: Vector | None = None,
    ) -> Selection:
        """Select from residual + gradient, and keep the rest: error feedback's step.

        Args:
            residual: What is owed from before: float32 or float64, one dimension,
                contiguous. So must be the others, of the same dtype and size.
            gradient: What is new.
            seed: Decides what is random, if anything is.
            state: From `initial_state()`, updated in place; a fresh one if left out.
            out: Where the rest goes; may be `residual`, and must not overlap these arrays
                otherwise. A new array if left out.
        """
        state = self.initial_state() if state is None else state
        out = checked_out(residual, gradient, out)
        return self._select_into(residual, gradient, out, seed, state)

    def _select_into(
        self,
        residual: Vector,
        gradient: Vector,
        out: Vector,
        seed: int,
        state: NDArray[np.float64],
    ) -> Selection:
        """`take` with arguments that were checked; without a fused kernel."""
        squares = kernels.add_residual(residual, gradient, out)
        stream = self.select_from(Host(out), seed, state)
        subtract(out, stream)
        return Selection(stream, out, squares)


def checked_out(residual: Vector, gradient: Vector, out: Vector | None) -> Vector:
    """The array for the rest; raise unless all three are of a kind."""
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
    """Raise unless it is a contiguous vector of the residual's size and type."""
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


def subtract(owed: Vector, sent: Stream) -> None:
    """Take off what is sent; where the very value is sent zero is left, of NaN too."""
    indices, values = sent.pairs()
    due = owed.reshape(-1, sent.block)[indices].reshape(-1)
    bits = f"u{owed.itemsize}"
    left = np.zeros_like(due)
    other = due.view(bits) != values.view(bits)
    with np.errstate(invalid="ignore"):
        np.subtract(due, values, out=left, where=other)
    kernels.scatter_assign(owed, indices, left, sent.block)


def parse_number(name: str, option: str, text: str) -> float:
    """Return the number of a specification such as topk:0.01."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{name}: {option} must be a number, got {text!r}") from None
