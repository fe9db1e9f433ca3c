"""Allreduce algorithms for dense vectors."""

from . import double_binary_tree as double_binary_tree
from . import halving_doubling as halving_doubling
from . import master as master
from . import native as native
from . import recursive_double as recursive_double
from . import ring as ring
from . import sharded as sharded
