"""Where measured networks are kept: one file for each set of machines and engine.

They are in the user's cache folder. SPARCML_NETWORK takes their place: a preset or a rate
such as 1gbit, a file, or none, for what is assumed without a measurement.
"""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..files import cache_folder, replacing
from .measurement import Measurement, from_json
from .presets import network as by_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..collectives import Network

VARIABLE = "SPARCML_NETWORK"
NONE = "none"


def file_for(engine: str, hosts: Sequence[str]) -> Path:
    """Where the network of these machines is kept."""
    key = hashlib.sha256("\n".join(hosts).encode()).hexdigest()[:16]
    return cache_folder() / f"network-{engine}-{key}.json"


def keep(measurement: Measurement) -> Path:
    """Keep it for later jobs; where, comes back. Readers see the old or the new file."""
    path = file_for(measurement.engine, measurement.hosts)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(measurement.to_json().encode())
    return path


def kept(engine: str, hosts: Sequence[str]) -> Measurement | None:
    """What was kept for these machines; a file that is none is left alone, with a word."""
    path = None
    try:
        path = file_for(engine, hosts)
        return _checked(from_json(path.read_text()), engine, hosts)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        print(  # noqa: T201
            f"sparcml: ignoring {path}: {error}; measure again with: sparcml probe",
            file=sys.stderr,
        )
        return None


def _checked(found: Measurement, engine: str, hosts: Sequence[str]) -> Measurement:
    if (found.engine, found.hosts) != (engine, tuple(hosts)):
        raise ValueError("it belongs to other machines")
    return found


def all_kept() -> list[Measurement]:
    """Everything that was kept and can be read, the latest first."""
    found = []
    with suppress(OSError):
        for path in cache_folder().glob("network-*.json"):
            with suppress(OSError, ValueError):
                found.append(from_json(path.read_text()))
    return sorted(found, key=lambda measurement: measurement.age)


def told(ranks: int | None = None) -> Network | str | None:
    """What SPARCML_NETWORK says to so many ranks: a network, "none", or nothing.

    Raises:
        ValueError: If it names no network.
    """
    text = os.environ.get(VARIABLE, "").strip()
    if not text or text.lower() == NONE:
        return NONE if text else None
    try:
        return named(text, ranks)
    except ValueError as error:
        raise ValueError(f"{VARIABLE}: {error}; a file, or none") from None


def named(text: str, ranks: int | None = None) -> Network:
    """A network by its name, its rate, or a file that a probe has written."""
    if os.sep not in text and not text.endswith(".json"):
        return by_name(text)
    try:
        return from_json(Path(text).expanduser().read_text()).named(ranks)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ValueError(
            f"network {text} cannot be used: {why}; write such a file with "
            f"sparcml probe --json"
        ) from None
