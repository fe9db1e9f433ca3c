"""Errors raised on all ranks together, and numbers and text gathered from all ranks."""

from __future__ import annotations

import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ..errors import DataError, MismatchError, SparcmlError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from .communicator import Communicator
    from .endpoint import Endpoint

T = TypeVar("T")

GATHERED = 64  # ranks whose numbers are gathered everywhere at once; that is P^2 messages


def run_collectively(comm: Communicator | None, work: Callable[[], T]) -> T:
    """Run a function on each rank; if it fails on one rank, all ranks raise. Collective.

    Args:
        comm: The communicator; None is a single rank.
        work: The function, which must not communicate.

    Raises:
        DataError: With the lowest rank that failed, and its message.
        Exception: The rank's own exception, if that is not a ValueError.
    """
    if comm is None or comm.size == 1:
        return work()
    try:
        result, failure = work(), None
    except Exception as error:
        result, failure = None, error
    messages = allgather_text(comm, _describe(failure))
    if not any(messages):
        return result  # type: ignore[return-value]  # without a failure it is work's result
    rank = next(r for r, message in enumerate(messages) if message)
    if failure is not None and not isinstance(failure, ValueError):
        failure.add_note(f"on rank {comm.rank} of {comm.size}")
        raise failure
    raise DataError(f"rank {rank}: {messages[rank]}") from failure


@contextmanager
def aborting(comm: Endpoint) -> Iterator[None]:
    """Report an error in the block to all ranks, which would wait for this one."""
    try:
        yield
    except SparcmlError:
        raise  # all ranks know
    except Exception as error:
        if comm.size > 1:
            comm.abort(error)
        raise


def allgather_numbers(comm: Communicator | None, *numbers: float) -> NDArray[np.float64]:
    """Return an array with one row of numbers per rank. Collective."""
    own = np.array(numbers, np.float64)
    if comm is None or comm.size == 1:
        return own[None]
    return np.stack(comm.allgather(own))


def allgather_text(comm: Communicator | None, text: str) -> list[str]:
    """Return the text of every rank. Collective."""
    if comm is None or comm.size == 1:
        return [text]
    # Communicators send floats: one per byte.
    own = np.frombuffer(text.encode("utf-8", "replace"), np.uint8).astype(np.float32)
    gathered = comm.allgather(own)
    return [a.astype(np.uint8).tobytes().decode("utf-8", "replace") for a in gathered]


def find_difference(
    comm: Communicator, values: Mapping[str, object]
) -> tuple[str, int] | None:
    """Return a name whose value differs on another rank, and that rank. Collective.

    Values are compared by their `repr`. The result is None if all are equal everywhere.
    """
    hashes = [zlib.crc32(repr(value).encode()) for value in values.values()]
    if comm.size > GATHERED and _is_same(comm, zlib.crc32(repr(hashes).encode())):
        return None
    for column, name in zip(allgather_numbers(comm, *hashes).T, values, strict=True):
        others = np.flatnonzero(column != column[comm.rank])
        if len(others):
            return name, int(others[0])
    return None


def _is_same(comm: Communicator, number: int) -> bool:
    """Return whether all ranks have the same number of 32 bits. Collective."""
    both = np.array([number, -number], np.float64)
    least, most = comm.allreduce(both, op="min", algorithm="recursive_double") * (1, -1)
    return bool(least == most)


def require_same(function: str, comm: Communicator, values: Mapping[str, object]) -> None:
    """Raise on all ranks if a value differs between two of them. Collective.

    Args:
        function: Name for the error message.
        comm: The ranks.
        values: Values by name, compared by their `repr`.

    Raises:
        MismatchError: With the name, two ranks and their values.
    """
    if comm.size == 1 or (difference := find_difference(comm, values)) is None:
        return
    name, _ = difference
    texts = allgather_text(comm, repr(values[name]))
    rank = next(rank for rank, text in enumerate(texts) if text != texts[0])
    raise MismatchError(
        f"{function}: rank 0 has {name}={texts[0]}, but rank {rank} has {name}={texts[rank]}; "
        f"all ranks must have the same {name}"
    )


def _describe(failure: Exception | None) -> str:
    if failure is None:
        return ""
    text = str(failure) or type(failure).__name__
    return text if isinstance(failure, ValueError) else f"{type(failure).__name__}: {text}"
