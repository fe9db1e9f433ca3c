"""Settings of the wrong type are refused where they are made, not where they are used.

Both checks store the plain Python number, so that NumPy's narrow ones never overflow later.
"""

from __future__ import annotations

from numbers import Integral, Real


def check_integer(owner: object, setting: str, *, optional: bool = False) -> None:
    """TypeError unless a frozen dataclass's setting is a whole number, or None if it may."""
    value = getattr(owner, setting)
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(_refusal(owner, setting, "a whole number", optional))
    object.__setattr__(owner, setting, int(value))


def check_real(owner: object, setting: str, *, optional: bool = False) -> None:
    """TypeError unless a frozen dataclass's setting is a number, or None if it may."""
    value = getattr(owner, setting)
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(_refusal(owner, setting, "a number", optional))
    object.__setattr__(owner, setting, float(value))


def _refusal(owner: object, setting: str, wanted: str, optional: bool) -> str:
    either = f"{wanted} or None" if optional else wanted
    got = getattr(owner, setting)
    return f"{type(owner).__name__}: {setting} must be {either}, got {got!r}"
