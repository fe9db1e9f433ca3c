"""Exceptions that a caller may catch; bad arguments raise ValueError and TypeError.

An error about a missing package also names the command that installs it (`how_to_install`).
"""


class SparcmlError(Exception):
    """Base class of the exceptions below."""


class TransportError(SparcmlError):
    """A peer has ended, failed or not answered. The communicator is closed for good."""


class WireError(SparcmlError):
    """A malformed message was received."""


class MismatchError(SparcmlError):
    """Ranks disagree on size, dtype, operation or the order of their calls."""


class DataError(SparcmlError, ValueError):
    """Data cannot be used; the message names the place and the problem."""


def how_to_install(extra: str) -> str:
    """Return the command for an extra; sparcml is installed from a clone, not from an index."""
    return f"pip install '.[{extra}]' in the clone of sparcml"
