"""Exceptions that a caller may catch; bad arguments raise ValueError and TypeError."""


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
