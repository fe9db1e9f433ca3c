"""Numbers with units, parsed and formatted: "1gbit", "50us", "25.6M", "64K"."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

BANDWIDTHS = {"bit": 1e0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9, "tbit": 1e12}
DURATIONS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
COUNTS = {"": 1e0, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}
SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}

_NUMBER = re.compile(r"([-+]?[\d.]+(?:e[-+]?\d+)?)\s*([^\d\s.]*)", re.IGNORECASE)


def parse_bandwidth(text: str) -> float:
    """Return bits per second of a bandwidth such as 100mbit, 2.5gbit or 1gbit/s.

    Raises:
        ValueError: If the text is not a bandwidth.
    """
    bits = _parse(text.strip().lower().removesuffix("/s"), BANDWIDTHS)
    if math.isnan(bits):
        raise ValueError(
            f"bandwidth must be a number such as 100mbit, got {text.strip()!r}"
        )
    return bits


def parse_duration(text: str) -> float:
    """Return seconds of a duration such as 50us, 2ms or 0s.

    Raises:
        ValueError: If the text is not a duration.
    """
    seconds = _parse(text, DURATIONS)
    if math.isnan(seconds):
        raise ValueError(f"duration must be a time such as 50us, got {text.strip()!r}")
    return seconds


def parse_count(text: str) -> float:
    """Return a number such as 25.6M or 7B; units are powers of 1000.

    Raises:
        ValueError: If the text is not a number.
    """
    count = _parse(text, COUNTS)
    if math.isnan(count):
        raise ValueError(
            f"count must be a number such as 25.6M or 7B, got {text.strip()!r}"
        )
    return count


def parse_size(text: str) -> int:
    """Return a positive integer such as 64K or 16M; units are powers of 1024.

    Raises:
        ValueError: If the text is not a size.
    """
    unit = text[-1:].lower()
    digits = text[:-1] if unit in SIZES else text
    if not digits.isdecimal() or int(digits) < 1:
        raise ValueError(f"size must be a number such as 64K or 16M, got {text!r}")
    return int(digits) * SIZES.get(unit, 1)


def format_bandwidth(bits: float) -> str:
    """Return bits per second as text: 2500000000 is 2.5gbit."""
    unit, scale = next((u, s) for u, s in reversed(BANDWIDTHS.items()) if bits >= s)
    return f"{bits / scale:g}{unit}"


def format_bytes(nbytes: float) -> str:
    """Return a number of bytes as text, in powers of 1000: 2500000 is 2.5 MB."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if nbytes >= scale:
            return f"{nbytes / scale:.1f} {unit}"
    return f"{nbytes:.0f} B"


def format_age(seconds: float) -> str:
    """Return an age in its largest suitable unit: 7200 is 2 hours."""
    for unit, each in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * each:
            return f"{seconds / each:.0f} {unit}"
    return f"{seconds:.0f} seconds"


def _parse(text: str, units: Mapping[str, float]) -> float:
    """Return the number times its unit, or NaN."""
    match = _NUMBER.fullmatch(text.strip().lower())
    if match is None or match[2] not in units:
        return math.nan
    try:
        return float(match[1]) * units[match[2]]
    except ValueError:
        return math.nan
