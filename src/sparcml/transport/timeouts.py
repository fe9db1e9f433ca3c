"""Waits: their timeouts, and for how long they spin and yield before they nap.

There are timeouts for ranks that are silent, for ranks that are busy, and for the start.

If the ranks of a machine have a processor each, a waiting rank polls without a pause for as
long as a message usually takes: that takes nothing from the others. If they share processors,
it yields to the one that has work. A longer wait naps between two polls, for longer and
longer, so that a rank that waits for seconds takes less than a twentieth of a processor.
SPARCML_WAIT replaces the rule: `spin`, `yield` or `nap`.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .base import Transport


SILENT_SECONDS = 30.0
START_SECONDS = 300.0
SETTING = "SPARCML_WAIT"
CGROUP_LIMIT = Path("/sys/fs/cgroup/cpu.max")


class Timeouts(NamedTuple):
    """Seconds that a rank waits for another one.

    Attributes:
        silent: For a rank that is dead, stopped or out of reach.
        busy: For a rank that is alive, or of which nothing is known.
        start: For all ranks to open a communicator.
    """

    silent: float
    busy: float
    start: float


def resolve_timeouts(
    timeout: float | None = None,
    engine_limit: float = math.inf,
    start_limit: float = START_SECONDS,
) -> Timeouts:
    """Return the timeouts that an argument, the environment and the engine ask for.

    Args:
        timeout: Limit of every wait. Default: SPARCML_TIMEOUT, or 30, for ranks that are
            silent, and SPARCML_BUSY_TIMEOUT, or the engine's limit, for ranks that are busy.
        engine_limit: Seconds that the engine itself waits for a rank.
        start_limit: Default of SPARCML_START_TIMEOUT.
    """
    start = _seconds_of("SPARCML_START_TIMEOUT", start_limit)
    if timeout is not None:
        seconds = _check("timeout", timeout)
        return Timeouts(seconds, seconds, start)
    silent = _seconds_of("SPARCML_TIMEOUT", SILENT_SECONDS)
    return Timeouts(silent, _seconds_of("SPARCML_BUSY_TIMEOUT", engine_limit), start)


def _seconds_of(name: str, default: float) -> float:
    value = os.environ.get(name)
    return _check(name, value) if value else default


def _check(name: str, value: Any) -> float:
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = -1.0
    if not 0 < seconds < math.inf:
        raise ValueError(f"{name}: value must be a number of seconds > 0, got {value!r}")
    return seconds


def start_error(
    name: str, missing: Sequence[int], size: int, seconds: float
) -> TransportError:
    """Return the error of an opening that has timed out.

    Args:
        name: Name of the rank or function that raises.
        missing: Ranks that have not come.
        size: Number of all ranks.
        seconds: The timeout.
    """
    ranks = " and ".join(", ".join(map(str, missing)).rsplit(", ", 1))
    who = {0: f"not all {size} ranks have", 1: f"rank {ranks} of {size} has not"}
    return TransportError(
        f"{name}: {who.get(len(missing), f'ranks {ranks} of {size} have not')} opened the "
        f"communicator within {seconds:g} s (SPARCML_START_TIMEOUT sets the limit)"
    )


class WaitPolicy(NamedTuple):
    """Seconds of a wait until each stage ends.

    Attributes:
        spin: Polling without a pause.
        yield_: Polling, and yielding the processor after each poll. Naps follow.
    """

    spin: float
    yield_: float


POLICIES = {
    "spin": WaitPolicy(2e-6, 1e-3),
    "yield": WaitPolicy(0.0, 1e-3),
    "nap": WaitPolicy(0.0, 20e-6),
}


def available_processors() -> float:
    """Return the number of processors that this process may use."""
    allowed = float(len(os.sched_getaffinity(0)))
    try:
        quota, period = CGROUP_LIMIT.read_text().split()
        return allowed if quota == "max" else min(allowed, int(quota) / int(period))
    except (OSError, ValueError):
        return allowed


def policy_name(local_ranks: int, processors: float) -> str:
    """Return the name of the policy for ranks that share these processors."""
    value = os.environ.get(SETTING)
    if value:
        if value not in POLICIES:
            raise ValueError(
                f"{SETTING}: value must be one of {', '.join(POLICIES)}, got {value!r}"
            )
        return value
    return "spin" if local_ranks <= processors else "yield"


def wait_policy(transport: Transport) -> WaitPolicy:
    """Return the policy of a rank, given the ranks on its machine."""
    local_ranks = transport.siblings[0].processes.known
    return POLICIES[policy_name(local_ranks, available_processors())]
