"""The vector that travels: sparse while that is cheaper."""

from .add import add as add
from .add import add_many as add_many
from .add import difference as difference
from .ops import MEAN as MEAN
from .ops import OPS as OPS
from .ops import neutral as neutral
from .parts import bounds as bounds
from .parts import join as join
from .parts import split as split
from .stream import Stream as Stream
from .switch import dense_is_smaller as dense_is_smaller
from .switch import switch as switch
