"""Collectives: one algorithm per file, each with its declared cost.

Importing the package imports every file, and each file registers its collective.
"""

from . import agree as agree
from . import allgather as allgather
from . import barrier as barrier
from . import broadcast as broadcast
from . import reduce as reduce
from . import split as split
from .base import ALLREDUCES as ALLREDUCES
from .base import COLLECTIVES as COLLECTIVES
from .base import Algorithm as Algorithm
from .base import Collective as Collective
from .base import register as register
from .base import unregister as unregister
from .call import Call as Call
from .checks import Shape as Shape
from .dense import double_binary_tree as double_binary_tree
from .dense import halving_doubling as halving_doubling
from .dense import master as master
from .dense import native as native
from .dense import recursive_double as recursive_double
from .dense import ring as ring
from .dense import sharded as sharded
from .sparse import dsar_split_allgather as dsar_split_allgather
from .sparse import hierarchical as hierarchical
from .sparse import oktopk as oktopk
from .sparse import ssar_recursive_double as ssar_recursive_double
from .sparse import ssar_ring as ssar_ring
from .sparse import ssar_split_allgather as ssar_split_allgather
