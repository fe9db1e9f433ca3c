"""Networks by name, or by bandwidth and latency: "gige", "100mbit", "1gbit,50us".

To add a preset, add a line to `PRESETS`. The overhead of each further message in flight is a
fifth of the latency: most of it is work at both ends, which does not overlap.
"""

from __future__ import annotations

import math

from ..costs import COSTS, Network
from ..units import parse_bandwidth, parse_duration

# Bandwidth, and the latency of a small message including the software.
PRESETS = {
    "gige": "1gbit,50us",  # Ethernet and TCP, as the next three
    "10gbit": "10gbit,30us",
    "25gbit": "25gbit,20us",
    "100gbit": "100gbit,10us",
    "ib-fdr": "54.5gbit,1.7us",  # InfiniBand FDR: four lanes of 13.64
    "aries": "80gbit,1.5us",  # Cray XC: injection bandwidth of a node
    "ec2": "10gbit,100us",  # virtual machines
}

DEFAULT_LATENCY = "50us"
MIN_BITS, MAX_BITS = 1e3, 1e14  # bits per second; anything beyond is a typing error
MAX_LATENCY = 10.0  # seconds
MIN_EMULATED, MAX_EMULATED = 10_000, 10**12  # bits per second that a link here can have


def network(name: str | Network) -> Network:
    """Return the model of a network.

    Args:
        name: A preset; a bandwidth such as "100mbit", with a latency of 50 µs; a bandwidth
            and a latency such as "1gbit,200us"; or a `Network`, which is returned unchanged.
    """
    if isinstance(name, Network):
        return _check(name)
    if not isinstance(name, str):
        raise TypeError(
            f"network: name must be a preset or a bandwidth such as '1gbit', or a Network, "
            f"got {name!r}"
        )
    text = name.strip().lower()
    bandwidth, _, latency = PRESETS.get(text, text).partition(",")
    bits, seconds = _bits(bandwidth, name), _seconds(latency or DEFAULT_LATENCY, name)
    return Network(
        latency=seconds, overhead=seconds / 5, seconds_per_byte=8 / bits, source=name
    )


def _check(given: Network) -> Network:
    for cost in (*COSTS, "burst"):
        if not 0 <= (seconds := getattr(given, cost)) < math.inf:
            raise ValueError(f"network: {cost} must be finite and >= 0, got {seconds!r}")
    return given


def link_bandwidth(name: str) -> int:
    """Return the bits per second of an emulated link.

    Args:
        name: A preset, of which only the bandwidth counts, or a bandwidth such as 250mbit.

    Raises:
        ValueError: If it is neither, or no link here can have this bandwidth.
    """
    if "," in name:
        raise ValueError(
            f"network: latency cannot be emulated; give a bandwidth only, got {name!r}"
        )
    bits = round(8 / network(name).seconds_per_byte)
    if not MIN_EMULATED <= bits <= MAX_EMULATED:
        raise ValueError(
            f"network: an emulated link must have 10kbit to 1tbit per second, got {name!r}"
        )
    return bits


def _bits(text: str, name: str) -> float:
    try:
        bits = parse_bandwidth(text)
    except ValueError:
        raise ValueError(
            f"network: name must be one of {', '.join(PRESETS)}, a bandwidth such as 100mbit, or a "
            f"bandwidth and a latency such as 1gbit,50us, got {name!r}"
        ) from None
    if not MIN_BITS <= bits <= MAX_BITS:
        raise ValueError(
            f"network: bandwidth must be from 1kbit to 100tbit per second, got {name!r}"
        )
    return bits


def _seconds(text: str, name: str) -> float:
    try:
        seconds = parse_duration(text)
    except ValueError:
        raise ValueError(
            f"network: latency must be a time such as 50us, 2ms or 0s, got {name!r}"
        ) from None
    if not 0 <= seconds <= MAX_LATENCY:
        raise ValueError(f"network: latency must be from 0 to 10 seconds, got {name!r}")
    return seconds
