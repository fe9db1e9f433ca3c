"""A measured network: what it costs, how well that fits, where and when it was."""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ..collectives import Network
from ..costs.calibration import Calibration
from ..costs.workload import COSTS

VERSION = 3
OLDEST = 2  # version that can still be read
MOST_BURST = 1 << 40  # bytes
MOST_WEIGHT = 1e6
MOST = 60.0  # seconds that nothing exceeds, unless a file is broken


@dataclass(frozen=True)
class Measurement:
    """What a probe has found.

    Attributes:
        network: The model, for all ranks sending at once, as collectives do.
        errors: Standard error of each of its costs.
        misfit: Typical relative difference between the model and a message's time.
        alone: Latency, seconds a byte and misfit of one pair of ranks, the others silent.
        engine: What carried the bytes.
        hosts: The machines, sorted.
        ranks: How many.
        measured: When, in seconds since 1970.
        sums: How far the predicted times of each algorithm were off, typically and
            relatively; empty if no sums were measured.
    """

    network: Network
    errors: dict[str, float]
    misfit: float
    alone: dict[str, float]
    engine: str
    hosts: tuple[str, ...]
    ranks: int
    measured: float
    sums: dict[str, float] = field(default_factory=dict)

    @property
    def age(self) -> float:
        """Seconds since then."""
        return max(0.0, time.time() - self.measured)

    @property
    def worst(self) -> float:
        """The largest misfit."""
        return max(self.misfit, *self.sums.values(), 0.0)

    def named(self, ranks: int | None = None) -> Network:
        """The network, saying where it comes from.

        What was measured of whole sums holds for as many ranks: for others, the costs
        alone count.
        """
        when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(self.measured))
        origin = f"measured {when} UTC, {self.ranks} ranks on {self.engine}"
        if ranks is None or ranks == self.ranks:
            return replace(self.network, source=origin)
        origin += f", so that costs alone count for {ranks}"
        return replace(self.network, burst=0.0, calibration=(), source=origin)

    def to_json(self) -> str:
        """For a file; `from_json` reads it."""
        facts = {"sparcml network": VERSION, **asdict(self)}
        del facts["network"]["source"]
        return json.dumps(facts, indent=2)


def from_json(text: str) -> Measurement:
    """A measurement from a file, distrusted.

    Raises:
        ValueError: If the text is no measurement, with the reason.
    """
    try:
        facts = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is no JSON ({error})") from None
    version = facts.get("sparcml network") if isinstance(facts, dict) else None
    if isinstance(version, int) and version < OLDEST:
        raise ValueError("an older sparcml has written it")
    if version not in (OLDEST, VERSION):
        raise ValueError(f"it does not say that it is a network of version {VERSION}")
    try:
        return _read(_from_version_2(facts) if version == OLDEST else facts)
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"it is incomplete ({error!r})") from None


# Names of version 2, which sparcml 0.1 wrote, and those of version 3.
RENAMED = {
    "message": "overhead",
    "byte": "seconds_per_byte",
    "coded": "seconds_per_encoded",
    "merged": "seconds_per_merged",
    "written": "seconds_per_written",
    "tuned": "calibration",
}


def _from_version_2(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of a version 2 file under the names of version 3."""
    renamed = {
        part: {RENAMED.get(name, name): value for name, value in facts[part].items()}
        for part in ("network", "errors", "alone")
    }
    return facts | renamed


def _read(facts: dict[str, Any]) -> Measurement:
    network = facts["network"]
    costs: dict[str, Any] = {name: _cost(name, network[name]) for name in COSTS}
    costs["burst"] = _number("burst", network["burst"], MOST_BURST)
    costs["calibration"] = tuple(map(_calibration, network["calibration"]))
    hosts, engine = facts["hosts"], facts["engine"]
    if not isinstance(engine, str) or not isinstance(hosts, list):
        raise TypeError("engine must be a name and hosts a list of names")
    if not all(isinstance(host, str) for host in hosts):
        raise TypeError("hosts must be names")
    if not isinstance(facts["ranks"], int) or facts["ranks"] < 1:
        raise ValueError(f"ranks must be at least 1, got {facts['ranks']!r}")
    return Measurement(
        Network(**costs),
        {str(k): float(v) for k, v in facts["errors"].items()},
        float(facts["misfit"]),
        {str(k): float(v) for k, v in facts["alone"].items()},
        engine,
        tuple(hosts),
        int(facts["ranks"]),
        _time(facts["measured"]),
        {str(k): float(v) for k, v in facts["sums"].items()},
    )


def _calibration(row: object) -> Calibration:
    if (
        not isinstance(row, list)
        or len(row) != len(Calibration._fields)
        or type(row[0]) is not str
    ):
        raise ValueError(f"a calibration must be a name and 4 weights, got {row!r}")
    weights = [_number(f"weights of {row[0]}", weight, MOST_WEIGHT) for weight in row[1:]]
    return Calibration(row[0], *weights)


def _cost(name: str, value: object) -> float:
    return _number(f"seconds of {name}", value, MOST)


def _number(name: str, value: object, most: float) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < most:
        return float(value)
    raise ValueError(f"{name} must be from 0 to {most:g}, got {value!r}")


def _time(value: object) -> float:
    seconds = float(value)  # type: ignore[arg-type]
    if not (math.isfinite(seconds) and 0 <= seconds < 1e11):
        raise ValueError(f"measured must be seconds since 1970, got {value!r}")
    return seconds
