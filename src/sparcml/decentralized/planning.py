"""Estimated time of a training step with neighbours, for `sparcml plan --topology`.

    step = compute + work of the method + exposed communication

A rank waits for its own neighbours only, so the busiest rank of the topology counts. The estimate
uses the declared cost of `neighbor_allreduce`, as `plan` uses those of allreduce algorithms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..aggregate import Compressed, Dense
from ..collectives.neighbor_allreduce import cost
from ..costs import CostTerms, Workload
from ..planning.candidates import Candidate, expression
from ..planning.plan import fastest
from ..quantize import QSGD, Quantizer
from ..sparsify import Sparsifier, TopK
from .methods import DCD, DPSGD, Choco

if TYPE_CHECKING:
    from ..aggregate import Method as AggregationMethod
    from ..costs import Network
    from ..planning.plan import Plan
    from .base import Method
    from .compression import Compressor
    from .topologies import Topology

VALUE_BYTES = 4.0
SAMPLE = 1 << 20  # values of a sample message, for the bytes per value of a quantizer
NANO = 1e-9
UPDATE_COST = 1.1  # ns per value that a step of SGD costs, as in `Dense`
REPLICA_COST = (
    1.0  # ns per value and replica: add the difference, and form the weighted sum
)
GAMMA = 0.04  # of Choco with TopK(0.01)


@dataclass(frozen=True)
class NeighborRow:
    """One decentralized method on a topology; times in seconds.

    Attributes:
        method: Name of the method.
        line: Python expression of the method.
        nbytes: Bytes that the busiest rank sends per step.
        communication: Time of the exchange.
        exposed: Part of it that does not overlap with computing.
        work: Time of the method's own work.
        step: Time of a step.
        speedup: Time of a step with the fastest dense allreduce, divided by that.
        same_values: Time of a step with the fastest allreduce of values that are compressed in
            the same way, divided by that.
    """

    method: str
    line: str
    nbytes: float
    communication: float
    exposed: float
    work: float
    step: float
    speedup: float
    same_values: float


def exchange_terms(
    topology: Topology,
    size: int,
    network: Network,
    *,
    nnz: int | None = None,
    value_bytes: float = VALUE_BYTES,
) -> CostTerms:
    """Return the cost of an exchange on the busiest rank, the mean over a period.

    Args:
        topology: The topology.
        size: Size of the vectors.
        network: Only its costs of encoding and reduction are used.
        nnz: Nonzeros per rank; all values by default.
        value_bytes: Bytes of one value on the wire.
    """
    workload = Workload(size, value_bytes, (size if nnz is None else nnz,) * topology.size)
    total = CostTerms()
    for step in range(topology.period):
        rank = max(range(topology.size), key=lambda r: _messages(topology, r, step))
        neighbors, receivers = (
            topology.neighbors(rank, step),
            topology.receivers(rank, step),
        )
        total += network.terms(cost(rank, workload, neighbors, receivers), value_bytes)
    part = 1 / topology.period
    return CostTerms(
        part * total.rounds, part * total.messages, part * total.nbytes, part * total.work
    )


def _messages(topology: Topology, rank: int, step: int) -> int:
    neighbors, receivers = topology.neighbors(rank, step), topology.receivers(rank, step)
    return max(len(neighbors), len(receivers))


def plan_neighbors(plan: Plan, topology: Topology) -> tuple[NeighborRow, ...]:
    """Return rows for the model, network and computing time of a plan.

    D-PSGD always; DCD with 4 bits and Choco with the largest 1 % if their theorems allow the
    topology. D-PSGD sends the model before the gradient is known, so it overlaps like the plan's
    allreduces; the others send a difference that depends on the gradient and do not overlap.

    Raises:
        ValueError: If the topology is for another world size, or D-PSGD excludes it.
    """
    if topology.size != plan.ranks:
        raise ValueError(
            f"plan: topology must be for {plan.ranks} ranks, got {topology.name} for "
            f"{topology.size}"
        )
    rows = [_row(plan, "D-PSGD", DPSGD(topology), Dense(), None, plan.overlap)]
    if topology.period == 1 and topology.is_symmetric:
        bits, top = QSGD(bits=4), TopK(0.01)
        coded, sparse = Compressed(quantize=bits), Compressed(top)
        rows += [
            _row(plan, "DCD, 4 bits", DCD(topology, bits), coded, bits, 0.0),
            _row(plan, "Choco, top 1 %", Choco(topology, top, GAMMA), sparse, top, 0.0),
        ]
    return tuple(rows)


def _row(
    plan: Plan,
    label: str,
    method: Method,
    peer: AggregationMethod,
    compress: Compressor,
    overlap: float,
) -> NeighborRow:
    size, topology = plan.model.parameters, method.topology
    nnz, value_bytes = size, VALUE_BYTES
    costs = UPDATE_COST
    if compress is not None:
        costs += REPLICA_COST * (1 + topology.degree) + compress.planning_cost
    if isinstance(compress, Sparsifier):
        nnz = compress.count(size) or size
    elif isinstance(compress, Quantizer):
        value_bytes = compress.nbytes(SAMPLE) / SAMPLE
    terms = exchange_terms(topology, size, plan.network, nnz=nnz, value_bytes=value_bytes)
    communication, work = terms.seconds(plan.network), NANO * costs * size
    exposed = max(0.0, communication - overlap * plan.compute)
    step = plan.compute + work + exposed
    candidate = Candidate(peer, peer.planning(plan.model.tensors))
    same, _ = fastest(plan, candidate, plan.network, plan.ranks)
    return NeighborRow(
        label,
        _line(method, compress),
        terms.nbytes,
        communication,
        exposed,
        work,
        step,
        plan.dense.step / step,
        same / step,
    )


def _line(method: Method, compress: Compressor) -> str:
    """Return Python that builds the method; `dec` is `sparcml.decentralized`."""
    settings = [f"dec.{method.topology.name}"]
    if compress is not None:
        settings.append(expression(compress))
    if isinstance(method, Choco):
        settings.append(f"gamma={method.gamma}")
    return f"dec.{type(method).__name__}({', '.join(settings)})"
