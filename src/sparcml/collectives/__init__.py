"""Who talks to whom. One algorithm a file, each with its declared cost."""

from collections.abc import Callable
from dataclasses import dataclass

from ..costs.workload import MADE_DENSE
from ..costs.workload import ONE_MACHINE as ONE_MACHINE
from ..costs.workload import Network as Network
from ..costs.workload import Round as Round
from ..costs.workload import Workload as Workload
from ..stream import Stream
from .base import Call as Call
from .base import Shape as Shape
from .dense import (
    double_binary_tree,
    halving_doubling,
    master,
    native,
    recursive_double,
    ring,
    sharded,
)
from .sparse import (
    dsar_split_allgather,
    hierarchical,
    oktopk,
    ssar_recursive_double,
    ssar_ring,
    ssar_split_allgather,
)


@dataclass(frozen=True)
class Algorithm:
    """An allreduce and its cost.

    Attributes:
        run: The collective.
        cost: What a rank sends and computes; in the first call, if `warm_cost` differs.
        is_dense: One of those that engines have too.
        supports_quantization: Codes each value at most twice: its sender, and
            the owner of its range.
        lossy: Leaves entries out, and `auto` leaves it out; sum and mean only.
        warm_cost: The cost of most later calls, where they reuse what the first one found.
        multi_node: For nodes with several ranks; elsewhere `auto` leaves it out.
        is_native: The engine's own.
        pipelined_cost: The cost in fewer rounds, which also says what goes on at the same time.
    """

    run: Callable[[Call, Stream], Stream]
    cost: Callable[[int, Workload], list[Round]]
    is_dense: bool = False
    supports_quantization: bool = False
    lossy: bool = False
    warm_cost: Callable[[int, Workload], list[Round]] | None = None
    multi_node: bool = False
    is_native: bool = False
    pipelined_cost: Callable[[int, Workload], list[Round]] | None = None

    def rounds(self, rank: int, workload: Workload) -> list[Round]:
        """What estimates go by."""
        rounds = (self.pipelined_cost or self.warm_cost or self.cost)(rank, workload)
        if workload.is_dense or not (self.is_dense or self.is_native):
            return rounds
        return [Round(written=MADE_DENSE * workload.blocks), *rounds]


ALLREDUCES = {
    "ssar_recursive_double": Algorithm(
        ssar_recursive_double.ssar_recursive_double, ssar_recursive_double.cost
    ),
    "ssar_split_allgather": Algorithm(
        ssar_split_allgather.ssar_split_allgather,
        ssar_split_allgather.cost,
        supports_quantization=True,
    ),
    "dsar_split_allgather": Algorithm(
        dsar_split_allgather.dsar_split_allgather,
        dsar_split_allgather.cost,
        supports_quantization=True,
    ),
    "native": Algorithm(native.native, native.cost, is_native=True),
    "master": Algorithm(master.master, master.cost, is_dense=True),
    "sharded": Algorithm(sharded.sharded, sharded.cost, is_dense=True),
    "ring": Algorithm(ring.ring, ring.cost, is_dense=True),
    "recursive_double": Algorithm(
        recursive_double.recursive_double, recursive_double.cost, is_dense=True
    ),
    "halving_doubling": Algorithm(
        halving_doubling.halving_doubling, halving_doubling.cost, is_dense=True
    ),
    "double_binary_tree": Algorithm(
        double_binary_tree.double_binary_tree,
        double_binary_tree.cost,
        is_dense=True,
        pipelined_cost=double_binary_tree.pipelined_cost,
    ),
    "ssar_ring": Algorithm(ssar_ring.ssar_ring, ssar_ring.cost),
    "oktopk": Algorithm(
        oktopk.oktopk,
        oktopk.cost,
        supports_quantization=True,
        lossy=True,
        warm_cost=oktopk.warm_cost,
    ),
    "hierarchical": Algorithm(
        hierarchical.hierarchical, hierarchical.cost, multi_node=True
    ),
}
