"""Decentralized training: ranks mix with their neighbours instead of all ranks.

A topology such as `ring(16)` has the neighbours and weights of every rank in every step, and
`comm.neighbor_allreduce(x, topology, step)` computes the weighted mean over them. A method such as
`DPSGD(ring(16))` trains with it: `x, state = method.step(comm, x, gradient, state, lr=0.1)`.
"""

from .methods import ADPSGD as ADPSGD
from .methods import D2 as D2
from .methods import DCD as DCD
from .methods import DPSGD as DPSGD
from .methods import ECD as ECD
from .methods import METHODS as METHODS
from .methods import Choco as Choco
from .methods import GradientTracking as GradientTracking
from .methods import Method as Method
from .methods import Moniqua as Moniqua
from .methods import NaiveQuantized as NaiveQuantized
from .methods import PushSum as PushSum
from .methods import RelaySum as RelaySum
from .named import by_name as by_name
from .topologies import Topology as Topology
from .topologies import base_graph as base_graph
from .topologies import complete as complete
from .topologies import exponential as exponential
from .topologies import from_matrix as from_matrix
from .topologies import from_networkx as from_networkx
from .topologies import one_peer_exponential as one_peer_exponential
from .topologies import random_regular as random_regular
from .topologies import ring as ring
from .topologies import star as star
from .topologies import torus as torus
