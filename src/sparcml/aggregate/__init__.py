"""Aggregation methods: gradients of all ranks to their mean, one method per file."""

from .adaptive import Adaptive as Adaptive
from .base import METHODS as METHODS
from .base import Method as Method
from .compressed import Compressed as Compressed
from .dense import Dense as Dense
from .dgc import DGC as DGC
from .majority_vote import MajorityVote as MajorityVote
from .onebit_adam import OneBitAdam as OneBitAdam
from .parse import as_method as as_method
from .parse import method_syntax as method_syntax
from .parse import parse_method as parse_method
from .powersgd import PowerSGD as PowerSGD
from .schedule import Schedule as Schedule
from .state import State as State
from .state import reshard as reshard
from .topk_adam import TopKAdam as TopKAdam
