"""How fast a link is: a network's name, or a number with a unit."""

import re

# What a user may say instead of a number; the rest of the list are plain rates.
NAMES = {"gige": "1gbit"}
KNOWN = ("100mbit", "1gbit", "gige", "10gbit", "25gbit", "100gbit")

SLOWEST = 10_000  # bits per second: a packet still takes about a second only
FASTEST = 10**12

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_RATE = re.compile(r"(\d+\.?\d*|\.\d+)\s*([kmgt]?)bit(/s|ps)?")


def parse_rate(network: str) -> int:
    """Bits per second of a link.

    Args:
        network: One of `KNOWN`, or any rate: 250mbit, 2.5gbit, "40 Gbit/s".

    Raises:
        ValueError: If it is neither, or no link can have this rate.
    """
    name = network.strip().lower()
    found = _RATE.fullmatch(NAMES.get(name, name))
    if found is None:
        raise ValueError(
            f"unknown network {network!r}; known are {', '.join(KNOWN)}, "
            "and any rate such as 250mbit or 2.5gbit"
        )
    rate = float(found[1]) * _UNITS[found[2]]
    if not SLOWEST <= rate <= FASTEST:
        raise ValueError(f"a link has between 10kbit and 1tbit per second, got {network!r}")
    return round(rate)


def format_rate(rate: int) -> str:
    """Bits per second, short: 2500000000 is 2.5gbit."""
    unit, scale = next((u, s) for u, s in reversed(_UNITS.items()) if rate >= s)
    return f"{rate / scale:g}{unit}bit"
