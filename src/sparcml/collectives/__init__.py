"""Who talks to whom. One algorithm a file, each with its declared cost."""

from collections.abc import Callable
from dataclasses import dataclass

from ..costs.workload import MADE_DENSE
from ..costs.workload import ONE_MACHINE as ONE_MACHINE
from ..costs.workload import Network as Network
from ..costs.workload import Problem as Problem
from ..costs.workload import Round as Round
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
        cost: What a rank sends and computes; in the first call, if `again` differs.
        dense: One of those that engines have too.
        quantizes: Codes each value at most twice: its sender, and the owner of its range.
        lossy: Leaves entries out, and `auto` leaves it out; sum and mean only.
        again: The cost of most later calls, where they reuse what the first one found.
        nested: For nodes with several ranks; elsewhere `auto` leaves it out.
        engines: The engine's own.
        brief: The cost in fewer rounds, which also says what goes on at the same time.
    """

    run: Callable[[Call, Stream], Stream]
    cost: Callable[[int, Problem], list[Round]]
    dense: bool = False
    quantizes: bool = False
    lossy: bool = False
    again: Callable[[int, Problem], list[Round]] | None = None
    nested: bool = False
    engines: bool = False
    brief: Callable[[int, Problem], list[Round]] | None = None

    def rounds(self, rank: int, problem: Problem) -> list[Round]:
        """What estimates go by."""
        rounds = (self.brief or self.again or self.cost)(rank, problem)
        if problem.is_dense or not (self.dense or self.engines):
            return rounds
        return [Round(written=MADE_DENSE * problem.blocks), *rounds]


ALLREDUCES = {
    "ssar_recursive_double": Algorithm(
        ssar_recursive_double.ssar_recursive_double, ssar_recursive_double.cost
    ),
    "ssar_split_allgather": Algorithm(
        ssar_split_allgather.ssar_split_allgather,
        ssar_split_allgather.cost,
        quantizes=True,
    ),
    "dsar_split_allgather": Algorithm(
        dsar_split_allgather.dsar_split_allgather,
        dsar_split_allgather.cost,
        quantizes=True,
    ),
    "native": Algorithm(native.native, native.cost, engines=True),
    "master": Algorithm(master.master, master.cost, dense=True),
    "sharded": Algorithm(sharded.sharded, sharded.cost, dense=True),
    "ring": Algorithm(ring.ring, ring.cost, dense=True),
    "recursive_double": Algorithm(
        recursive_double.recursive_double, recursive_double.cost, dense=True
    ),
    "halving_doubling": Algorithm(
        halving_doubling.halving_doubling, halving_doubling.cost, dense=True
    ),
    "double_binary_tree": Algorithm(
        double_binary_tree.double_binary_tree,
        double_binary_tree.cost,
        dense=True,
        brief=double_binary_tree.brief,
    ),
    "ssar_ring": Algorithm(ssar_ring.ssar_ring, ssar_ring.cost),
    "oktopk": Algorithm(
        oktopk.oktopk, oktopk.cost, quantizes=True, lossy=True, again=oktopk.again
    ),
    "hierarchical": Algorithm(hierarchical.hierarchical, hierarchical.cost, nested=True),
}
