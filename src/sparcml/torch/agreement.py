"""Agreement of all ranks on a call of compress, wrap or Decentralized.

A rank that never makes the call would be waited for in vain, and plain DDP on that rank would
wait for the others. Therefore the ranks first meet in the store of torch.distributed, before they
open connections.
"""

from __future__ import annotations

import json
import math
import os
import time
import warnings
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from torch import distributed as dist

from ..communicator.collective_errors import require_same
from ..errors import MismatchError
from ..startup import from_group, world
from ..transport.timeouts import resolve_timeouts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..communicator.communicator import Communicator

MAX_PAUSE = 0.1  # seconds between two looks whether all ranks have come

LINGER_SECONDS = 2.0
ERROR = "error"  # in place of the arguments of a rank whose call raised

# Number of agreements of these ranks, the same on all of them.
_count: Counter[tuple[str, tuple[int, ...]]] = Counter()


def agree_on_arguments(
    function: str, group: Any, arguments: Mapping[str, object], timeout: float | None
) -> None:
    """Raise unless all ranks make this call with the same arguments. Collective.

    Args:
        function: Name of the call.
        group: Process group; None is the default group.
        arguments: Arguments by name, compared by their `repr`.
        timeout: Seconds to wait for all ranks. Default: SPARCML_START_TIMEOUT, or 300. After
            SPARCML_TIMEOUT a warning names the ranks that are missing.

    Raises:
        MismatchError: On all ranks that make the call.
    """
    if not dist.is_initialized():
        return  # the ranks meet when the communicator is opened
    store, members = _next_meeting(function, group)
    texts = {name: repr(value) for name, value in arguments.items()}
    store.set(str(dist.get_rank()), json.dumps(texts))
    _wait_for_all(function, store, members, timeout)
    given = {rank: json.loads(store.get(str(rank))) for rank in members}
    first = members[0]
    for rank, other in given.items():
        if ERROR in other:
            _linger(store, len(members))
            raise MismatchError(f"{function}: rank {rank} raised {other[ERROR]}")
        for name, text in given[first].items():
            if other[name] != text:
                _linger(store, len(members))
                raise MismatchError(
                    f"{function}: rank {first} has {name}={text}, but rank {rank} has "
                    f"{name}={other[name]}; all ranks must pass the same {name}"
                )


def open_communicator(
    function: str,
    comm: Communicator | None,
    group: Any,
    arguments: Mapping[str, object],
    timeout: float | None,
) -> Communicator:
    """Return a communicator of ranks that make this call with the same arguments. Collective.

    Args:
        function: Name of the call.
        comm: Communicator to duplicate; None is that of the group.
        group: Process group; None is the ranks of `sparcml.world()`.
        arguments: Arguments by name, compared by their `repr`.
        timeout: Seconds to wait for a rank.

    Raises:
        MismatchError: On all ranks that make the call.
    """
    if comm is not None:
        own = comm.duplicate()
    else:
        agree_on_arguments(function, group, arguments, timeout)
        own = (
            world(timeout=timeout) if group is None else from_group(group, timeout=timeout)
        )
    try:
        require_same(function, own, arguments)
    except MismatchError:
        own.close()
        raise
    return own


@contextmanager
def reporting_errors(function: str, group: Any) -> Iterator[None]:
    """Report an error in the arguments of this rank to the ranks that wait for its call."""
    try:
        yield
    except Exception as error:
        if dist.is_initialized():
            store, _ = _next_meeting(function, group)
            text = f"{type(error).__name__}: {error}"
            store.set(str(dist.get_rank()), json.dumps({ERROR: text}))
        raise


def _next_meeting(function: str, group: Any) -> tuple[Any, tuple[int, ...]]:
    """Return a store for the next call of these ranks, and the ranks."""
    members = tuple(dist.get_process_group_ranks(group))
    _count[function, members] += 1
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    case = f"{function}:{attempt}:{_count[function, members]}:{members}"
    default = dist.distributed_c10d._get_default_store()
    return dist.PrefixStore(f"sparcml:{case}", default), members


def _linger(store: Any, ranks: int) -> None:
    """Wait on rank 0, whose process may hold the store, until all ranks have read it."""
    end = time.monotonic() + LINGER_SECONDS
    read = store.add("read", 1)
    while dist.get_rank() == 0 and read < ranks and time.monotonic() < end:
        time.sleep(0.01)
        read = store.add("read", 0)


def _wait_for_all(
    function: str, store: Any, members: tuple[int, ...], timeout: float | None
) -> None:
    limits = resolve_timeouts(timeout)
    limit = limits.start if timeout is None else timeout
    start, pause, warned = time.monotonic(), 1e-3, False
    missing = list(members)
    while True:
        waited = time.monotonic() - start
        try:
            missing = [rank for rank in missing if not store.check([str(rank)])]
        except RuntimeError:  # the store has ended with rank 0
            waited = math.inf
        if not missing:
            return
        ranks = ", ".join(map(str, missing))
        who = f"{function}: rank {ranks} of {len(members)} has not called {function}"
        if waited > limit:
            raise MismatchError(
                f"{who} within {limit:g} s; all ranks must call it (SPARCML_START_TIMEOUT or "
                f"timeout= sets the limit)"
            )
        if waited > limits.silent and not warned:
            warned = True
            text = (
                f"{who} for {waited:.0f} s; all ranks must call it. It is waited for until "
                f"{limit:g} s (SPARCML_START_TIMEOUT or timeout= sets the limit)"
            )
            warnings.warn(text, RuntimeWarning, stacklevel=4)
        time.sleep(pause)
        pause = min(2 * pause, MAX_PAUSE)
