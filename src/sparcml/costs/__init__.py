"""Cost model: the messages, bytes and work of a collective, and the seconds they take."""

from .network import COSTS as COSTS
from .network import ONE_MACHINE as ONE_MACHINE
from .network import Calibration as Calibration
from .network import CostTerms as CostTerms
from .network import Network as Network
from .network import in_shared_memory as in_shared_memory
from .workload import Workload as Workload
from .workload import ring_nbytes as ring_nbytes
