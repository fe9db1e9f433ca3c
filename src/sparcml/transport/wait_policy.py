"""How ranks wait for messages: for how long they spin and yield before they nap.

If the ranks of a machine have a processor each, a waiting rank polls without a pause for as
long as a message usually takes: that takes nothing from the others. If they share processors,
it yields to the one that has work. A longer wait naps between two polls, for longer and
longer, so that a rank that waits for seconds takes less than a twentieth of a processor.

SPARCML_WAIT replaces the rule: `spin`, `yield` or `nap`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .base import Transport

SETTING = "SPARCML_WAIT"
CGROUP_LIMIT = Path("/sys/fs/cgroup/cpu.max")


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
