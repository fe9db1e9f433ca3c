"""Network models of a job: measured and stored, or set by SPARCML_NETWORK.

The user's cache folder holds one file per set of machines and engine. SPARCML_NETWORK overrides
it with a preset or a bandwidth such as 1gbit, a file, or `none` for the default.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from ..costs import Calibration, Network
from ..files import cache_folder, replacing
from ..transport.bootstrap import broadcast, gather_hosts
from .measurement import Measurement, from_json
from .presets import network as by_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..transport import Transport

VARIABLE = "SPARCML_NETWORK"
NONE = "none"


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
