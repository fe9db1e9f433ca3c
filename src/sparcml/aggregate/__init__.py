"""The ranks' gradients -> their mean: one method a file, with explicit state."""

from .base import Method as Method
from .compressed import Compressed as Compressed
from .dense import Dense as Dense
from .dgc import DGC as DGC
from .majority_vote import MajorityVote as MajorityVote
from .powersgd import PowerSGD as PowerSGD
from .schedule import Schedule as Schedule
from .state import State as State
from .state import reshard as reshard
