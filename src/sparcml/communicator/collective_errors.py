"""Work that each rank does by itself, and that fails on all ranks or on none."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ..errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from .communicator import Communicator

T = TypeVar("T")


def together(comm: Communicator | None, work: Callable[[], T]) -> T:
    """What work gives on this rank; if a rank cannot do it, all raise and none waits.

    Raises:
        DataError: Naming the lowest rank that failed, and what it said.
        Exception: On a rank whose own failure is of another kind, that one.
    """
    if comm is None or comm.size == 1:
        return work()
    try:
        result, failure = work(), None
    except Exception as error:
        result, failure = None, error
    said = [_decode(text) for text in comm.allgather(_encode(failure))]
    if not any(said):
        return result  # type: ignore[return-value]  # no failure: work's own
    rank = next(r for r, text in enumerate(said) if text)
    if failure is not None and not isinstance(failure, DataError):
        failure.add_note(f"on rank {comm.rank} of {comm.size}")
        raise failure
    raise DataError(f"rank {rank}: {said[rank]}") from failure


def gather(comm: Communicator | None, *numbers: float) -> NDArray[np.float64]:
    """One row of numbers a rank."""
    mine = np.array(numbers, np.float64)
    if comm is None or comm.size == 1:
        return mine[None]
    return np.stack(comm.allgather(mine))


def _encode(failure: Exception | None) -> NDArray[np.float32]:
    """Only floats travel between ranks: one a byte of the message."""
    text = "" if failure is None else str(failure) or type(failure).__name__
    if failure is not None and not isinstance(failure, DataError):
        text = f"{type(failure).__name__}: {text}"
    return np.frombuffer(text.encode("utf-8", "replace"), np.uint8).astype(np.float32)


def _decode(numbers: NDArray[np.float32]) -> str:
    return numbers.astype(np.uint8).tobytes().decode("utf-8", "replace")
