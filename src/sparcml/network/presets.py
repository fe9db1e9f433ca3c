"""Networks by name, or by what they carry: "gige", "10gbit", "100mbit", "1gbit,50us".

A name stands for a rate and a latency. Of several messages on their way at the same time
each further one takes a fifth of the latency: most of that is work at both ends, which
does not overlap as well as the bytes do.
"""

from __future__ import annotations

import math
import re

from ..collectives import Network
from ..costs.workload import COSTS

# Rate, and the time from sending a small message to having it, with the software.
PRESETS = {
    "gige": "1gbit,50us",  # Ethernet and TCP, as the next three
    "10gbit": "10gbit,30us",
    "25gbit": "25gbit,20us",
    "100gbit": "100gbit,10us",
    "ib-fdr": "54.5gbit,1.7us",  # InfiniBand FDR: four lanes of 13.64
    "aries": "80gbit,1.5us",  # Cray XC: what a node can inject
    "ec2": "10gbit,100us",  # virtual machines
}

LATENCY = "50us"  # if only a rate is given
BITS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
SLOWEST, FASTEST = 1e3, 1e14  # bits per second; beyond them it must be a slip
LONGEST = 10.0  # seconds

_RATE = re.compile(r"([-+\d.e]+?)\s*([kmgt]?)bit(?:/s)?", re.IGNORECASE)
_TIME = re.compile(r"([-+\d.e]+?)\s*(s|ms|us|µs|ns)", re.IGNORECASE)


def network(name: str | Network) -> Network:
    """What a network of that name costs.

    Args:
        name: A preset; a rate such as "100mbit", which comes with 50 µs; a rate with a
            latency such as "1gbit,200us"; or a `Network`, which is returned as it is.
    """
    if isinstance(name, Network):
        return _checked(name)
    text = name.strip().lower()
    rate, _, latency = PRESETS.get(text, text).partition(",")
    bits, seconds = _bits(rate, name), _seconds(latency or LATENCY, name)
    return Network(
        latency=seconds, overhead=seconds / 5, seconds_per_byte=8 / bits, source=name
    )


def _checked(given: Network) -> Network:
    for cost in (*COSTS, "burst"):
        if not 0 <= (seconds := getattr(given, cost)) < math.inf:
            raise ValueError(f"network: {cost} must be finite and >= 0, got {seconds!r}")
    return given


def _bits(text: str, name: str) -> float:
    """Bits per second."""
    found = _RATE.fullmatch(text.strip())
    number = math.nan if found is None else _number(found[1])
    if found is None or math.isnan(number):
        raise ValueError(
            f"unknown network {name!r}: it is one of {', '.join(PRESETS)}, or a rate such "
            f"as 100mbit, or a rate and a latency such as 1gbit,50us"
        )
    bits = number * BITS[found[2].lower()]
    if not SLOWEST <= bits <= FASTEST:
        raise ValueError(
            f"network {name!r}: no link carries {bits:g} bits per second; rates go from "
            f"1kbit to 100tbit"
        )
    return bits


def _seconds(text: str, name: str) -> float:
    found = _TIME.fullmatch(text.strip())
    number = math.nan if found is None else _number(found[1])
    if found is None or math.isnan(number):
        raise ValueError(
            f"network {name!r}: latency must be a time such as 50us, 2ms or 0s, got "
            f"{text.strip()!r}"
        )
    seconds = number * SECONDS[found[2].lower()]
    if not 0 <= seconds <= LONGEST:
        raise ValueError(
            f"network {name!r}: latency must be from 0 to 10 seconds, got {seconds:g}"
        )
    return seconds


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
