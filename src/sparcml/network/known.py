"""Which network a new communicator reckons with: rank 0 looks, and tells the others."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from ..collectives import Network
from ..costs.calibration import Calibration
from ..transport.bootstrap import broadcast, gather_hosts
from .store import NONE, kept, told

if TYPE_CHECKING:
    from ..transport import Transport


def known(transport: Transport, assumed: Network) -> Network:
    """What SPARCML_NETWORK says on rank 0, else what was measured, else `assumed`.

    Raises:
        ValueError: On all ranks, if SPARCML_NETWORK names no network.
    """
    places = gather_hosts(transport)
    answer = b""
    if transport.rank == 0:
        try:
            found = _found(transport, places, assumed)
            answer = json.dumps(asdict(found)).encode()
        except ValueError as error:
            answer = json.dumps({"error": str(error)}).encode()
    facts = json.loads(broadcast(transport, answer))
    if "error" in facts:
        raise ValueError(facts["error"])
    facts["calibration"] = tuple(Calibration(*row) for row in facts["calibration"])
    return Network(**facts)


def _found(transport: Transport, places: tuple[str, ...], assumed: Network) -> Network:
    named = told(transport.size)
    if isinstance(named, Network):
        return named
    measured = None if named == NONE else kept(transport.engine, places)
    return assumed if measured is None else measured.named(transport.size)
