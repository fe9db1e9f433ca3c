"""Network models of a job: measured and stored, or set by SPARCML_NETWORK.

The user's cache folder holds one file per set of machines and engine. SPARCML_NETWORK overrides
it with a preset or a bandwidth such as 1gbit, a file, or `none` for the default.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..costs import COSTS, Calibration, Network
from ..files import cache_folder, replacing
from ..transport.bootstrap import broadcast, gather_hosts
from .presets import network as by_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..transport import Transport

VARIABLE = "SPARCML_NETWORK"
NONE = "none"

VERSION = 3
OLDEST = 2  # version that can still be read
# Larger numbers occur in broken files only.
MAX_BURST = 1 << 40  # bytes
MAX_WEIGHT = 1e6
MAX_SECONDS = 60.0


@dataclass(frozen=True)
class Measurement:
    """Result of a probe.

    Attributes:
        network: The model, with all ranks sending at once, as in collectives.
        errors: Standard error of each cost.
        misfit: Typical relative difference between the model and the time of a message.
        exclusive: Latency, seconds per byte and misfit of one pair of ranks while the others
            are idle.
        engine: Engine of the transport.
        hosts: Names of the machines, sorted.
        ranks: World size.
        measured: Time of the measurement, in seconds since 1970.
        allreduce_misfits: Typical relative error of the predicted time of each allreduce
            algorithm; empty if allreduces were not measured.
    """

    network: Network
    errors: dict[str, float]
    misfit: float
    exclusive: dict[str, float]
    engine: str
    hosts: tuple[str, ...]
    ranks: int
    measured: float
    allreduce_misfits: dict[str, float] = field(default_factory=dict)

    @property
    def age(self) -> float:
        """Seconds since the measurement."""
        return max(0.0, time.time() - self.measured)

    @property
    def max_misfit(self) -> float:
        """The largest misfit."""
        return max(self.misfit, *self.allreduce_misfits.values(), 0.0)

    def model(self, ranks: int | None = None) -> Network:
        """Return the network model, with its source.

        The calibration of algorithms holds for the measured world size only; for another
        one the model has the costs without it.
        """
        when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(self.measured))
        source = f"measured {when} UTC, {self.ranks} ranks on {self.engine}"
        if ranks is None or ranks == self.ranks:
            return replace(self.network, source=source)
        source += f"; not calibrated for {ranks}"
        return replace(self.network, burst=0.0, calibration=(), source=source)

    def to_json(self) -> str:
        """Return the text of a file, which `from_json` reads."""
        facts = {"sparcml network": VERSION, **asdict(self)}
        del facts["network"]["source"]
        return json.dumps(facts, indent=2)


def from_json(text: str) -> Measurement:
    """Return the measurement in a file's text, whose fields are all checked.

    Raises:
        ValueError: If the text is not a measurement, with the reason.
    """
    try:
        facts = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON ({error})") from None
    version = facts.get("sparcml network") if isinstance(facts, dict) else None
    if isinstance(version, int) and version < OLDEST:
        raise ValueError("it was written by an older version of sparcml")
    if version not in (OLDEST, VERSION):
        raise ValueError(f"it is not a network file of version {VERSION}")
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
    "alone": "exclusive",
    "sums": "allreduce_misfits",
}


def _from_version_2(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of a version 2 file under the names of version 3."""
    renamed = {RENAMED.get(name, name): value for name, value in facts.items()}
    for part in ("network", "errors", "exclusive"):
        renamed[part] = {RENAMED.get(k, k): v for k, v in renamed[part].items()}
    return renamed


def _read(facts: dict[str, Any]) -> Measurement:
    network = facts["network"]
    costs: dict[str, Any] = {
        name: _number(f"seconds of {name}", network[name], MAX_SECONDS) for name in COSTS
    }
    costs["burst"] = _number("burst", network["burst"], MAX_BURST)
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
        {str(k): float(v) for k, v in facts["exclusive"].items()},
        engine,
        tuple(hosts),
        int(facts["ranks"]),
        _time(facts["measured"]),
        {str(k): float(v) for k, v in facts["allreduce_misfits"].items()},
    )


def _calibration(row: object) -> Calibration:
    if (
        not isinstance(row, list)
        or len(row) != len(Calibration._fields)
        or type(row[0]) is not str
    ):
        raise ValueError(f"a calibration must be a name and 4 weights, got {row!r}")
    weights = [_number(f"weights of {row[0]}", weight, MAX_WEIGHT) for weight in row[1:]]
    return Calibration(row[0], *weights)


def _number(name: str, value: object, limit: float) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and 0 <= value < limit:  # type: ignore[operator]
        return float(value)  # type: ignore[arg-type]
    raise ValueError(f"{name} must be from 0 to {limit:g}, got {value!r}")


def _time(value: object) -> float:
    seconds = float(value)  # type: ignore[arg-type]
    if not (math.isfinite(seconds) and 0 <= seconds < 1e11):
        raise ValueError(f"measured must be seconds since 1970, got {value!r}")
    return seconds


def lookup(transport: Transport, default: Network) -> Network:
    """Look up the network model on rank 0 and broadcast it. Collective.

    It is that of SPARCML_NETWORK, or else the stored measurement, or else `default`.

    Raises:
        ValueError: On all ranks, if SPARCML_NETWORK is not a network.
    """
    machines = gather_hosts(transport)
    answer = b""
    if transport.rank == 0:
        try:
            model = _lookup(transport, machines, default)
            answer = json.dumps(asdict(model)).encode()
        except ValueError as error:
            answer = json.dumps({"error": str(error)}).encode()
    facts = json.loads(broadcast(transport, answer))
    if "error" in facts:
        raise ValueError(facts["error"])
    facts["calibration"] = tuple(Calibration(*row) for row in facts["calibration"])
    return Network(**facts)


def _lookup(transport: Transport, machines: tuple[str, ...], default: Network) -> Network:
    text = os.environ.get(VARIABLE, "").strip()
    if text.lower() == NONE:
        return default
    if text:
        try:
            return from_text(text, transport.size)
        except ValueError as error:
            raise ValueError(f"{VARIABLE}: {error}; a file, or none") from None
    measurement = load(transport.engine, machines)
    return default if measurement is None else measurement.model(transport.size)


def from_text(text: str, ranks: int | None = None) -> Network:
    """Return a network by its name, its bandwidth, or the path of a stored measurement.

    Args:
        text: A preset, a bandwidth such as 1gbit, or a path.
        ranks: World size, if known; see `Measurement.model`.
    """
    if os.sep not in text and not text.endswith(".json"):
        return by_name(text)
    try:
        return from_json(Path(text).expanduser().read_text()).model(ranks)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ValueError(
            f"network: file {text} cannot be read: {why}; write a network file with "
            f"sparcml probe --json"
        ) from None


def file_for(engine: str, machines: Sequence[str]) -> Path:
    """Return the file of the network between these machines."""
    key = hashlib.sha256("\n".join(machines).encode()).hexdigest()[:16]
    return cache_folder() / f"network-{engine}-{key}.json"


def save(measurement: Measurement) -> Path:
    """Store a measurement for later jobs and return its file.

    Readers see the old or the new file, never a part of it.
    """
    path = file_for(measurement.engine, measurement.hosts)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(measurement.to_json().encode())
    return path


def load(engine: str, machines: Sequence[str]) -> Measurement | None:
    """Load the measurement of these machines, or None.

    A file that cannot be read is ignored with a warning on stderr.
    """
    path = None
    try:
        path = file_for(engine, machines)
        measurement = from_json(path.read_text())
        if (measurement.engine, measurement.hosts) != (engine, tuple(machines)):
            raise ValueError("it belongs to other machines")  # noqa: TRY301
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        print(  # noqa: T201
            f"sparcml: ignoring {path}: {error}; measure again with: sparcml probe",
            file=sys.stderr,
        )
        return None
    return measurement


def load_all() -> list[Measurement]:
    """Load all readable measurements, the most recent first."""
    measurements = []
    with suppress(OSError):
        for path in cache_folder().glob("network-*.json"):
            with suppress(OSError, ValueError):
                measurements.append(from_json(path.read_text()))
    return sorted(measurements, key=lambda measurement: measurement.age)
