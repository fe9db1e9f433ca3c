"""The compiled inner loops of sparcml."""

from collections.abc import Sequence
import enum
from typing import Annotated, Any, Final, overload

import numpy
from numpy.typing import NDArray


def isa() -> str:
    """Return the active instruction set."""

def isas() -> list[str]:
    """Return the instruction sets that this processor supports, best first."""

def use_isa(name: str) -> None:
    """Run the kernels on this instruction set"""

def threads() -> int:
    """Return the number of threads that a kernel may use."""

def set_threads(count: int) -> None:
    """Let kernels use this many threads; results do not depend on it."""

def usable_processors() -> int:
    """Return the number of processors that this process may use."""

def ascending_prefix(indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], blocks: int) -> int:
    """
    Return the length of the longest prefix that ascends strictly and is below blocks.
    """

@overload
def coalesce(indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def coalesce(indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def coalesce(indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def coalesce(indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """
    Sort rows by index and sum those of equal index, from first to last. Return the number of indices.
    """

@overload
def compact(dense: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: float, block: int, bitwise: bool, limit: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def compact(dense: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: float, block: int, bitwise: bool, limit: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def compact(dense: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: int, block: int, bitwise: bool, limit: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def compact(dense: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: int, block: int, bitwise: bool, limit: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """
    Write the blocks that differ from fill. Return their number, at most limit + 1.
    """

@overload
def count_nonfill(dense: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: float, block: int, bitwise: bool) -> int: ...

@overload
def count_nonfill(dense: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: float, block: int, bitwise: bool) -> int: ...

@overload
def count_nonfill(dense: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: int, block: int, bitwise: bool) -> int: ...

@overload
def count_nonfill(dense: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: int, block: int, bitwise: bool) -> int:
    """Return the number of blocks that differ from fill."""

@overload
def combine_dense(op: int, a: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def combine_dense(op: int, a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def combine_dense(op: int, a: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def combine_dense(op: int, a: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write out[i] = a[i] op b[i]."""

@overload
def add_momentum(momentum: float, nesterov: bool, u: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], g: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], velocity: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], term: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def add_momentum(momentum: float, nesterov: bool, u: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], velocity: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], term: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Write velocity = momentum u + g; with nesterov, velocity = momentum (u + g) and term = velocity + g.
    """

@overload
def merge(op: int, ai: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], av: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], bi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], bv: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def merge(op: int, ai: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], av: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], bi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], bv: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def merge(op: int, ai: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], av: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], bi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], bv: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def merge(op: int, ai: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], av: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], bi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], bv: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """Merge two sorted streams. Return the number of entries written."""

@overload
def merge_many(op: int, indices: Sequence[Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)]], values: Sequence[Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]], block: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def merge_many(op: int, indices: Sequence[Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)]], values: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], block: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def merge_many(op: int, indices: Sequence[Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)]], values: Sequence[Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]], block: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def merge_many(op: int, indices: Sequence[Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)]], values: Sequence[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]], block: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """
    Merge sorted streams, folded per index in their order. Return the number of entries.
    """

@overload
def scatter(op: int, dense: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int = 1) -> None: ...

@overload
def scatter(op: int, dense: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int = 1) -> None: ...

@overload
def scatter(op: int, dense: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int = 1) -> None: ...

@overload
def scatter(op: int, dense: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int = 1) -> None:
    """Set dense[i] = dense[i] op value."""

@overload
def scatter_assign(dense: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int = 1) -> None: ...

@overload
def scatter_assign(dense: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int = 1) -> None: ...

@overload
def scatter_assign(dense: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int = 1) -> None: ...

@overload
def scatter_assign(dense: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int = 1) -> None:
    """Set dense[i] = value."""

def top_k_capacity(size: int, k: int) -> int:
    """Return the size that oi and ov must have for top_k."""

@overload
def top_k(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def top_k(values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write the k entries of largest magnitude to the front of oi and ov."""

@overload
def top_k_with_residual(residual: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], scale: float = 1.0, momentum: tuple[Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], float, bool] | None = None) -> float: ...

@overload
def top_k_with_residual(residual: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], scale: float = 1.0, momentum: tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], float, bool] | None = None) -> float:
    """
    Write scale residual + gradient to out, then top_k of it, zeroed in out. Return the squared norm. add_residual explains momentum.
    """

@overload
def bucket_top_k(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, bucket: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def bucket_top_k(values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, bucket: int, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write the k entries of largest magnitude of every bucket."""

@overload
def bucket_top_k_with_residual(residual: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, bucket: int, out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], scale: float = 1.0, momentum: tuple[Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], float, bool] | None = None) -> float: ...

@overload
def bucket_top_k_with_residual(residual: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, bucket: int, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], scale: float = 1.0, momentum: tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], float, bool] | None = None) -> float:
    """
    Write scale residual + gradient to out, then bucket_top_k of it, zeroed in out. Return the squared norm. add_residual explains momentum.
    """

@overload
def at_least(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], threshold: float, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

@overload
def at_least(values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threshold: float, oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """
    Write the entries of at lowest this magnitude that fit. Return their number.
    """

@overload
def at_least_with_residual(residual: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], threshold: float, out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], scale: float = 1.0, momentum: tuple[Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], float, bool] | None = None) -> tuple[int, float]: ...

@overload
def at_least_with_residual(residual: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threshold: float, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], oi: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], ov: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], scale: float = 1.0, momentum: tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], float, bool] | None = None) -> tuple[int, float]:
    """
    Write scale residual + gradient to out, then at_least of it. Return the number of entries and the squared norm. add_residual explains momentum.
    """

@overload
def add_residual(residual: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], scale: float = 1.0, momentum: tuple[Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], float, bool] | None = None) -> float: ...

@overload
def add_residual(residual: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], scale: float = 1.0, momentum: tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], float, bool] | None = None) -> float:
    """
    Write scale residual + gradient to out. Return its squared norm. With momentum = (u, velocity, m, nesterov), the term of add_momentum replaces the gradient, and velocity receives the new momentum.
    """

@overload
def block_squared_norms(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def block_squared_norms(values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write the squared norm of every block."""

def bitmap_decode(data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], nnz: int, blocks: int, out: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write the nnz positions of the ones in data."""

def crc32c(data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], crc: int = 0) -> int:
    """Return the CRC-32C of data, continued from crc."""

def crc32_spans(data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], stops: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], modulus: int, out: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write zlib's CRC-32 of each data[start:stop], modulo modulus."""

def elias_plan(levels: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[int, int, int]:
    """
    Return the bits of the dense and the sparse code, and the number of nonzero levels.
    """

def elias_encode(levels: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], sparse: bool, out: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write the omega code of the levels, in words of 8 bytes."""

def elias_decode(data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], sparse: bool, nonzeros: int, levels: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write the levels of a code."""

def gap_plan(indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[int, int]:
    """(r, bytes) of the section of indices"""

def gap_nbytes(indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], r: int) -> int:
    """Return the bytes of the section of indices with this r."""

def gap_encode(indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], r: int, out: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Write the Golomb-Rice code of the differences between ascending indices.
    """

def gap_decode(data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], nnz: int, blocks: int, out: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write the nnz indices below blocks of a section."""

def to_half(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu')], bfloat: bool) -> None:
    """Convert float32 to the bits of float16 or bfloat16."""

def from_half(bits: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], bfloat: bool) -> None:
    """Convert the bits of float16 or bfloat16 to float32."""

def to_grid(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], bucket: int, levels: int, bits: int, norm: int, scale: float, seed: int, code: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Values at random on an even grid, each bucket by its norm"""

def from_grid(code: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], bucket: int, levels: int, bits: int, values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write the values of a code."""

def to_table(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], bucket: int, levels: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], bits: int, norm: int, scale: float, seed: int, code: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Round values stochastically to a table of levels, relative to the norm of their bucket.
    """

def from_table(code: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], bucket: int, levels: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], bits: int, values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write the values of a code."""

def to_integer(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], step: float, max_multiple: int, packed: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """
    Pack multiples of a step. Return the number of values known to be valid.
    """

def from_integer(packed: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], step: float, max_multiple: int, values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """Write the multiples. Return the number of values known to be valid."""

def moments(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[float, float, float, int]:
    """
    Return the max magnitude, sum, sum of squares and count of values except NaN.
    """

def to_natural(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], seed: int, code: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Round each value stochastically to a neighbouring power of two."""

def from_natural(code: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write the values of a code."""

def to_onebit(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], bucket: int, mean: bool, levels: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], bits: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Two levels a bucket, and which of them each value takes"""

def to_sign(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], bucket: int, scales: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], bits: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Write the mean magnitude per bucket, and one bit per value, set if it is >= 0.
    """

def from_bitplane(levels: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], bits: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], bucket: int, values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write the level that each bit selects."""

MAX_FUSED_BUCKET: int = 2048

def to_grid_corrected(residual: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, gradient: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: float, corrected: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')] | None, bucket: int, levels: int, bits: int, norm: int, seed: int, code: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> tuple[int, bool]:
    """Encode scale * residual + gradient; (nonzeros, all finite)"""

def mean_from_grid(codes: Sequence[Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]], own: int, bucket: int, levels: int, bits: int, mean: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], corrected: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')] | None = None) -> None:
    """Mean of codes; subtract one from the corrected gradient"""

@overload
def weighted_sum(weights: Sequence[float], vectors: Sequence[Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]], rate: float, g: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, base: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> bool: ...

@overload
def weighted_sum(weights: Sequence[float], vectors: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], rate: float, g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, base: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> bool:
    """
    Write the weighted sum of vectors, minus rate g, minus base; return whether it is finite.
    """

@overload
def add_differences(weights: Sequence[float], vectors: Sequence[Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]], gamma: float, own: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], x: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], rate: float, g: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def add_differences(weights: Sequence[float], vectors: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], gamma: float, own: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], rate: float, g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Write x - rate g plus gamma times the weighted sum of the differences to own.
    """

@overload
def add_differences_at(indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, weights: Sequence[float], vectors: Sequence[Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]], gamma: float, own: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], x: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], rate: float, g: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def add_differences_at(indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, weights: Sequence[float], vectors: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], gamma: float, own: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], rate: float, g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write the results of add_differences at some blocks of out."""

@overload
def project_rows(M: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], Q: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], P: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]) -> None: ...

@overload
def project_rows(M: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], Q: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], P: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """Write M Q; factors have one row per column."""

@overload
def project_columns(M: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], P: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], Q: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]) -> None: ...

@overload
def project_columns(M: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], P: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], Q: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """Write the product of the transpose of M and P."""

@overload
def expand_factors(P: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], Q: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], M: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], residual: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')] | None = None) -> None: ...

@overload
def expand_factors(P: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], Q: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], M: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], residual: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')] | None = None) -> None:
    """
    Write the product of P and the transpose of Q, and subtract it from the residual.
    """

@overload
def project_corrected_rows(residual: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], scale: float, M: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], Q: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], P: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]) -> bool: ...

@overload
def project_corrected_rows(residual: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], scale: float, M: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], Q: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], P: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> bool:
    """Write M = scale * residual + gradient and M Q; all finite"""

@overload
def orthonormalize(P: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]) -> None: ...

@overload
def orthonormalize(P: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """Make the rows orthonormal, in place; dependent ones become zero."""

MAX_EXPANSION: int = 1024

def check_message(message: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], blocks: int | None) -> tuple[int, str, int] | None:
    """
    Check a message, also for a range of blocks if given; return what is wrong.
    """

def message_indices(message: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], blocks: int, allocate: object) -> tuple[Any, tuple[int, str, int] | None]:
    """
    Return the memory of the indices of a checked message, and what is wrong.
    """

@overload
def encode_message(head: bytes, blocks: int, indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: object, home: object | None, section: object | None, bounded: bool, allocate: object) -> tuple[Any, int, Any]: ...

@overload
def encode_message(head: bytes, blocks: int, indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: object, home: object | None, section: object | None, bounded: bool, allocate: object) -> tuple[Any, int, Any]: ...

@overload
def encode_message(head: bytes, blocks: int, indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, values: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: object, home: object | None, section: object | None, bounded: bool, allocate: object) -> tuple[Any, int, Any]: ...

@overload
def encode_message(head: bytes, blocks: int, indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, values: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: object, home: object | None, section: object | None, bounded: bool, allocate: object) -> tuple[Any, int, Any]:
    """
    Return the memory and the bytes of a message, and the memory of a vector that became dense.
    """

@overload
def place_values(message: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: object, out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], allocate: object) -> tuple[int, str, int] | None: ...

@overload
def place_values(message: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: object, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], allocate: object) -> tuple[int, str, int] | None: ...

@overload
def place_values(message: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: object, out: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], allocate: object) -> tuple[int, str, int] | None: ...

@overload
def place_values(message: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], fill: object, out: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], allocate: object) -> tuple[int, str, int] | None:
    """Write all values of a checked message; return what is wrong."""

class MessageMemory:
    """Memory of a result; it has the buffer protocol."""

def message_memory(nbytes: int) -> memoryview:
    """Return memory that later messages reuse."""

def release_messages() -> int:
    """Free the unused memory of messages; return its bytes."""

class Channel:
    """What moves the messages of compiled collectives."""

def host_channel(rank: int, size: int) -> Channel:
    """Return a channel whose messages the host moves."""

def mpi_channel(rank: int, size: int, handle_bytes: int, functions: Sequence[int], handles: Sequence[int], any_source: int, any_tag: int, tag_at: int, segment_bytes: int, paced_bytes: int, spin: float, give_way: float) -> Channel:
    """
    Return a channel through functions of an MPI library, given by their addresses. The handles are those of the communicators for messages and control messages, of bytes, and of the types and operations in the order of headers.
    """

class CallState:
    """The current or last call of a communicator."""

    def __init__(self) -> None: ...

    @property
    def sequence(self) -> int:
        """Number of the call."""

    @property
    def is_busy(self) -> bool:
        """Whether a thread is in the call."""

    @property
    def is_closed(self) -> bool:
        """Whether the communicator is closed."""

    @is_closed.setter
    def is_closed(self, arg: bool, /) -> None: ...

    def begin(self, name: object) -> None:
        """Begin the next call, or raise if another thread is in one."""

    def end(self) -> None:
        """End the call."""

    def fail(self) -> None:
        """End the call after an error."""

    def __str__(self) -> str: ...

class CallIdentity:
    """What messages and errors say of a call."""

    def __init__(self, name: object, op: object, code: int) -> None: ...

    @property
    def name(self) -> str:
        """Collective."""

    @property
    def op(self) -> str:
        """Operation."""

class CurrentCall:
    """The call that compiled code is in."""

    @property
    def identity(self) -> CallIdentity:
        """Collective and operation."""

    @property
    def sequence(self) -> int:
        """Number of the call."""

    @property
    def x(self) -> Any:
        """Vector of this rank, or None."""

    @property
    def quantizer(self) -> Any:
        """Quantizer of the call, or None."""

class Case:
    """What the calls that share a choice have in common."""

    def __init__(self, size: int, block: int, dtype: int, op: int, quantizer: object | None) -> None: ...

class ChoiceCache:
    """Algorithms that `auto` has chosen, by case."""

    def __init__(self) -> None: ...

    MIN_CALLS: Final[int] = ...
    """Calls that a new choice holds for."""

    SIMILAR_CALLS: Final[int] = ...
    """Calls with similar results, after which a choice holds again."""

    MAX_CASES: Final[int] = ...
    """Cached cases."""

    SAMPLE: Final[int] = ...
    """Values of a dense result that are read."""

    def choice(self, case: Case) -> int | None:
        """
        Return the number of the algorithm that was chosen, if the choice still holds.
        """

    def store(self, case: Case, algorithm: int | None) -> None:
        """
        Store a choice that the ranks have agreed on, or None if they must in each call.
        """

    def record(self, case: Case, nnz: int) -> None:
        """
        Record the nnz of a result, and drop the choice if it has changed by 2x.
        """

    def clear(self) -> None:
        """Discard all choices and predictions."""

@overload
def estimated_nnz(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, fill: float) -> int: ...

@overload
def estimated_nnz(values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, fill: float) -> int: ...

@overload
def estimated_nnz(values: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, fill: int) -> int: ...

@overload
def estimated_nnz(values: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], block: int, fill: int) -> int:
    """Return the number of blocks that differ from fill, by a sample."""

class Algorithm(enum.Enum):
    """The compiled allreduces."""

    ssar_recursive_double = 3

    ssar_split_allgather = 4

    dsar_split_allgather = 5

    native = 6

    ssar_ring = 15

class CallEvent:
    """An event of a trace; -1: a field without a value."""

    @property
    def phase(self) -> str:
        """Phase."""

    @property
    def start(self) -> float:
        """Seconds on the clock of time.perf_counter."""

    @property
    def end(self) -> float:
        """Seconds on the clock of time.perf_counter."""

    @property
    def round(self) -> int:
        """Round of the message."""

    @property
    def peer(self) -> int:
        """The other rank."""

    @property
    def nbytes(self) -> int:
        """Bytes of the message."""

    @property
    def nnz(self) -> int:
        """Entries that are encoded, or added."""

class CallCounters:
    """What compiled calls have counted."""

    @property
    def messages(self) -> int:
        """Messages sent."""

    @property
    def bytes(self) -> int:
        """Bytes sent."""

    @property
    def received_messages(self) -> int:
        """Messages received."""

    @property
    def received_bytes(self) -> int:
        """Bytes received."""

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds per phase."""

    @property
    def allreduces(self) -> list[tuple[str, int, float, float]]:
        """
        Names of algorithms, with their calls and predicted and measured seconds.
        """

class CompiledCalls:
    """The compiled collectives of one communicator."""

    def __init__(self, host: object, channel: object, state: object, choices: object, stream: object) -> None: ...

    def poll(self) -> bool:
        """Make progress in the current wait; return whether it is over."""

    def drain(self) -> CallCounters | None:
        """Return what was counted since the last time, or None."""

    @property
    def current(self) -> CurrentCall:
        """The call in progress, or the last one."""

    def allreduce(self, x: Any, op: Any, algorithm: Any) -> Any:
        """
        Return the sum or mean, or None if Python must check, choose or trace first.
        """

    def reduce(self, identity: CallIdentity, x: object, quantizer: object, quantization: Quantization | None, wants_seen: bool) -> tuple[Any, list[Any]]:
        """
        Return the result for a stream, a dense one for the engine's own allreduce. With quantized values also what the ranks saw, if that is wanted: this rank's part of each range, its own range, and that range as decoded.
        """

    def barrier(self, identity: CallIdentity) -> None:
        """Wait for all ranks."""

    def agree(self, identity: CallIdentity, x: object, quantizer: object, round: int) -> Any:
        """
        Return the nnz of all ranks, or what the host makes of headers that differ.
        """

    def allgather(self, identity: CallIdentity, x: object, described: object, out: object) -> Any:
        """
        Return the vectors and numbers of all ranks, or add vectors to out. The shape of x in the header is that of `described`.
        """

class Quantization:
    """How a call quantizes values."""

    def __init__(self, own: bytes, reduced: bytes, seed: int) -> None: ...
