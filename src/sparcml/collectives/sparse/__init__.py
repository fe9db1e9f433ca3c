"""Allreduce algorithms for sparse streams."""

from . import dsar_split_allgather as dsar_split_allgather
from . import hierarchical as hierarchical
from . import ssar_allgather as ssar_allgather
from . import ssar_recursive_double as ssar_recursive_double
from . import ssar_ring as ssar_ring
from . import ssar_split_allgather as ssar_split_allgather
