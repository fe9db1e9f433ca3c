"""The vector that travels: sparse while that is cheaper."""

from .densify import dense_is_smaller as dense_is_smaller
from .densify import switch as switch
from .ops import MEAN as MEAN
from .ops import OPS as OPS
from .ops import neutral as neutral
from .ranges import bounds as bounds
from .ranges import join as join
from .ranges import split as split
from .reduction import add as add
from .reduction import add_many as add_many
from .reduction import difference as difference
from .stream import Stream as Stream
