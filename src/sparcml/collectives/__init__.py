"""Collectives: one algorithm per file, each with its declared cost.

Importing the package imports every file, and each file registers its collective.
"""

from . import agree as agree
from . import agree_topology as agree_topology
from . import allgather as allgather
from . import alltoall as alltoall
from . import barrier as barrier
from . import broadcast as broadcast
from . import dense as dense
from . import neighbor_allreduce as neighbor_allreduce
from . import neighbor_exchange as neighbor_exchange
from . import numbers as numbers
from . import reduce as reduce
from . import sparse as sparse
from . import split as split
from .base import ALLREDUCES as ALLREDUCES
from .base import COLLECTIVES as COLLECTIVES
from .base import Algorithm as Algorithm
from .base import Collective as Collective
from .base import register as register
from .base import unregister as unregister
from .call import Call as Call
from .checks import Shape as Shape
