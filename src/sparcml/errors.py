"""What a caller may catch; bad arguments are ValueError and TypeError, as usual."""


class SparcmlError(Exception):
    """The base of the errors below."""


class TransportError(SparcmlError):
    """A peer is gone or late. The communicator it came from is closed for good."""


class WireError(SparcmlError):
    """Bytes arrived that are no stream."""


class MismatchError(SparcmlError):
    """Ranks disagree on size, dtype, operation or the order of their calls."""


class DataError(SparcmlError, ValueError):
    """Data that cannot be used; says where they are and what is wrong with them."""
