"""How fast an emulated link is: a network's name, or a rate."""

from .presets import network as by_name

SLOWEST = 10_000  # bits per second: a packet still takes about a second only
FASTEST = 10**12

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def parse_rate(network: str) -> int:
    """Bits per second of a link.

    Args:
        network: A preset, of which only the rate counts, or a rate: 250mbit, 2.5gbit.

    Raises:
        ValueError: If it is neither, or no link here can have this rate.
    """
    if "," in network:
        raise ValueError(f"latency cannot be emulated: give a rate alone, got {network!r}")
    rate = round(8 / by_name(network).seconds_per_byte)
    if not SLOWEST <= rate <= FASTEST:
        raise ValueError(
            f"an emulated link has between 10kbit and 1tbit per second, got {network!r}"
        )
    return rate


def format_rate(rate: int) -> str:
    """Bits per second, short: 2500000000 is 2.5gbit."""
    unit, scale = next((u, s) for u, s in reversed(_UNITS.items()) if rate >= s)
    return f"{rate / scale:g}{unit}bit"
