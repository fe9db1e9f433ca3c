"""Streams: vectors that are sparse while that is smaller."""

from ..operations import MEAN as MEAN
from ..operations import OPS as OPS
from .densify import dense_is_smaller as dense_is_smaller
from .densify import densify_if_smaller as densify_if_smaller
from .ranges import join as join
from .ranges import range_offsets as range_offsets
from .ranges import split as split
from .reduction import add as add
from .reduction import add_many as add_many
from .reduction import difference as difference
from .reduction import identity as identity
from .stream import Stream as Stream
