"""Topologies: one file each."""

from .base import Topology as Topology
from .base_graph import base_graph as base_graph
from .complete import complete as complete
from .exponential import exponential as exponential
from .from_matrix import from_matrix as from_matrix
from .from_networkx import from_networkx as from_networkx
from .one_peer_exponential import one_peer_exponential as one_peer_exponential
from .random_regular import random_regular as random_regular
from .ring import ring as ring
from .star import star as star
from .torus import torus as torus
