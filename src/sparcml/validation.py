"""Checks of arguments.

The checks of a frozen dataclass raise where it is constructed, and store the plain Python number,
so that NumPy's narrow integers cannot overflow later.
"""

from __future__ import annotations

import operator
from numbers import Integral, Real
from typing import Any

MAX_BUCKET = 2**32 - 1  # the wire field of a bucket has 32 bits
MAX_BITS = 8


def as_integer(
    function: str, parameter: str, value: Any, minimum: int | None = None
) -> int:
    """Return an argument as an int.

    Raises:
        TypeError: If it is not an integer.
        ValueError: If it is below the minimum.
    """
    number: int | None
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise TypeError(f"{function}: {parameter} must be an integer, got {value!r}")
    if minimum is not None and number < minimum:
        raise ValueError(f"{function}: {parameter} must be >= {minimum}, got {value!r}")
    return number


def as_seconds(function: str, parameter: str, value: Any) -> float:
    """Return an argument as a finite number of seconds.

    Raises:
        TypeError: If it is not a number.
        ValueError: If it is negative or not finite.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(
            f"{function}: {parameter} must be a number of seconds, got {value!r}"
        )
    seconds = float(value)
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"{function}: {parameter} must be finite and >= 0, got {value!r}")
    return seconds


def check_callable(function: str, fn: Any) -> None:
    """Raise a TypeError unless the program of a rank is a function."""
    if not callable(fn):
        raise TypeError(f"{function}: fn must be a function of a Communicator, got {fn!r}")


def check_integer(
    owner: object, parameter: str, *, optional: bool = False, minimum: int | None = None
) -> None:
    """Check that a field of a frozen dataclass is an integer, or None if optional.

    Raises:
        TypeError: If it is not.
        ValueError: If it is below the minimum.
    """
    value = getattr(owner, parameter)
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(_message(owner, parameter, "an integer", optional))
    if minimum is not None and value < minimum:
        raise ValueError(_message(owner, parameter, f">= {minimum}", optional))
    object.__setattr__(owner, parameter, int(value))


def check_real(owner: object, parameter: str, *, optional: bool = False) -> None:
    """Check that a field of a frozen dataclass is a real number, or None if optional.

    Raises:
        TypeError: If it is not.
    """
    value = getattr(owner, parameter)
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(_message(owner, parameter, "a real number", optional))
    object.__setattr__(owner, parameter, float(value))


def check_ratio(owner: Any) -> None:
    """Check that the field `ratio` is above 0 and at most 1, or None."""
    check_real(owner, "ratio", optional=True)
    if owner.ratio is not None and not 0 < owner.ratio <= 1:
        raise ValueError(
            f"{type(owner).__name__}: ratio must be above 0 and at most 1, got "
            f"{owner.ratio}; 0.01 is 1 %"
        )


def check_bucket(owner: Any) -> None:
    """Check that the field `bucket` fits its wire field, or is None for the full vector."""
    check_integer(owner, "bucket", optional=True)
    if owner.bucket is not None and not 1 <= owner.bucket <= MAX_BUCKET:
        raise ValueError(
            f"{type(owner).__name__}: bucket must be from 1 to 2^32 - 1 values, or None for the "
            f"full vector, got {owner.bucket}"
        )


def check_bits(owner: Any) -> None:
    """Check that the field `bits` is from 2 to 8."""
    check_integer(owner, "bits")
    if not 2 <= owner.bits <= MAX_BITS:
        raise ValueError(
            f"{type(owner).__name__}: bits must be from 2 to {MAX_BITS}, got {owner.bits}"
        )


def _message(owner: object, parameter: str, constraint: str, optional: bool) -> str:
    either = f"{constraint} or None" if optional else constraint
    got = getattr(owner, parameter)
    return f"{type(owner).__name__}: {parameter} must be {either}, got {got!r}"
