"""Timeouts of waits: for ranks that are silent, for ranks that are busy, and at the start."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Sequence

SILENT_SECONDS = 30.0
START_SECONDS = 300.0


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
