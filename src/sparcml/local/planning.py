"""Estimated steps of local training: closed forms, and rows beside those of a plan.

T is the computing time of a step, h the part of it that hides communication, V the time of a dense
exchange of the model, H the steps per round, P the fragments, and D the delay in steps:

    data parallel    T + max(0, V - h T, V / layers)
    local SGD        T + max(0, V - h T) / H                     and DiLoCo
    streaming        T + P / H max(0, V / P - (h + D) T)         hidden if V <= P (h + D) T
    SparseLoCo       T + S / H, with S the time to receive the messages of all other ranks

With several sites, collectives still know only ranks. What is assumed: consecutive ranks share a
site, all ranks of a site share one link to the others, and the link is as fast in both directions
at once. Of N ranks in G sites, in each direction and exchange, the link of a site carries

    dense            2 (N - 1) / N models, in 2 (N - 1) rounds of a ring through all ranks
    SparseLoCo       (N / G) (N - N / G) messages: each rank of the site sends its own to each
                     rank of the others

An exchange takes as long as the slower of the two networks. The engine's own allreduce, which
dense exchanges use, may send more than a ring: halving and doubling does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..costs import ring_nbytes
from ..network.presets import network as parse_network
from ..validation import as_integer

if TYPE_CHECKING:
    from ..costs import Network
    from ..planning.plan import Plan

VALUE_BYTES = 4
K, CHUNK = 64, 4096  # of SparseLoCo
INDEX_BITS = 7.6  # a Rice code of random indices at 64 of 4096
FRAGMENTS = (4, 3, 2, 1)  # the first that divides the steps of a round
MAX_DELAY = 5  # steps; more costs accuracy


def data_parallel(compute: float, exchange: float, hidden: float, layers: int) -> float:
    """Return the seconds of a step; at least the last layer's exchange is exposed."""
    return compute + max(0.0, exchange - hidden * compute, exchange / layers)


def diloco(compute: float, exchange: float, hidden: float, every: int) -> float:
    """Return the mean seconds of a step with one exchange per round."""
    return compute + max(0.0, exchange - hidden * compute) / every


def streaming(
    compute: float, exchange: float, hidden: float, every: int, fragments: int, delay: float
) -> float:
    """Return the mean seconds of a step with one exchange per fragment and round."""
    exposed = max(0.0, exchange / fragments - (hidden + delay) * compute)
    return compute + fragments / every * exposed


def sparse_loco(compute: float, exchange: float, every: int) -> float:
    """Return the mean seconds of a step with one exchange of compressed changes per round."""
    return compute + exchange / every


def site_messages(ranks: int, sites: int) -> int:
    """Return the messages per direction on a site's link if each rank sends to all others."""
    inside = ranks // sites
    return inside * (ranks - inside)


def bandwidth_for(
    utilization: float,
    bits: float,
    compute: float,
    hidden: float,
    *,
    every: int | None = None,
    layers: int = 1,
    fragments: int = 1,
    delay: float = 0.0,
) -> float:
    """Return the bits per second at which computing takes this part of the time.

    Args:
        utilization: Computing time / time of a step, below 1.
        bits: Bits of an exchange per direction.
        compute: Computing time of a step.
        hidden: Part of it that hides communication.
        every: Steps per round; None is data parallel.
        layers: Number of layers, for data parallel.
        fragments: Number of fragments.
        delay: Steps between sending and merging a fragment.
    """
    slack = 1 / utilization - 1
    if every is None:
        return max(bits / ((slack + hidden) * compute), bits / (layers * slack * compute))
    return bits / ((every * slack + fragments * (hidden + delay)) * compute)


@dataclass(frozen=True)
class LocalRow:
    """Estimate of one form of local training; times in seconds.

    Attributes:
        form: Name.
        line: Python that constructs it.
        nbytes: Bytes sent per rank and step, the mean over a round.
        exchange: Seconds of the exchange of a full round.
        step: Mean seconds of a step.
        speedup: Dense step / this one.
        utilization: Computing time / time of a step.
    """

    form: str
    line: str
    nbytes: float
    exchange: float
    step: float
    speedup: float
    utilization: float


def plan_local(
    plan: Plan, every: int, sites: int = 1, wan: str | None = None
) -> tuple[LocalRow, ...]:
    """Return rows for the model, network and computing time of a plan.

    See the module for what is assumed about sites.

    Args:
        plan: The plan; its network is that within a site.
        every: Steps per round.
        sites: Number of sites.
        wan: Bandwidth of each site's link, such as 500mbit; needed with several sites.

    Raises:
        ValueError: If the number of sites does not divide the ranks, or `wan` is missing.
    """
    every = as_integer("plan", "local_steps", every, minimum=1)
    between = _between(plan, sites, wan)
    dense = plan.dense.communication
    size, ranks, T, h = plan.model.parameters, plan.ranks, plan.compute, plan.overlap
    message = size * K / CHUNK * (INDEX_BITS + 2) / 8 + size * K / CHUNK / 1024 * 8
    gathered = _seconds(plan.network, message * (ranks - 1))
    if between is not None:
        ring = ring_nbytes(ranks, VALUE_BYTES * size)
        dense = max(dense, _seconds(between, ring, rounds=2 * (ranks - 1)))
        crossing = message * site_messages(ranks, sites)
        gathered = max(gathered, _seconds(between, crossing))
    fragments = next(p for p in FRAGMENTS if every % p == 0)
    delay = min(MAX_DELAY, every // fragments - 1)
    baseline = T + max(0.0, dense - h * T)
    rows = [
        ("dense, every step", "", plan.dense.nbytes, dense, baseline),
        (
            f"local SGD, H = {every}",
            f"sparcml.torch.LocalSGD(model, optimizer, {every})",
            plan.dense.nbytes / every,
            dense,
            diloco(T, dense, h, every),
        ),
        (
            f"DiLoCo, H = {every}",
            f"sparcml.torch.DiLoCo(model, optimizer, {every})",
            plan.dense.nbytes / every,
            dense,
            diloco(T, dense, h, every),
        ),
        (
            f"DiLoCo, {fragments} fragments, delay {delay}",
            (
                f"sparcml.torch.DiLoCo(model, optimizer, {every}, fragments={fragments}, "
                f"delay={delay}, mix=0.5)"
            ),
            plan.dense.nbytes / every,
            dense,
            streaming(T, dense, h, every, fragments, delay),
        ),
        (
            f"SparseLoCo, H = {every}",
            f"sparcml.torch.SparseLoCo(model, optimizer, {every})",
            message * (ranks - 1) / every,
            gathered,
            sparse_loco(T, gathered, every),
        ),
    ]
    return tuple(
        LocalRow(form, line, nbytes, exchange, step, baseline / step, T / step)
        for form, line, nbytes, exchange, step in rows
    )


def _between(plan: Plan, sites: int, wan: str | None) -> Network | None:
    sites = as_integer("plan", "sites", sites, minimum=1)
    if plan.ranks % sites:
        raise ValueError(f"plan: sites must divide the {plan.ranks} ranks, got {sites}")
    if (sites > 1) != (wan is not None):
        raise ValueError(
            f"plan: wan must be the bandwidth between sites, such as 500mbit, if there are "
            f"several, got {wan} for {sites}"
        )
    return None if wan is None else parse_network(wan)


def _seconds(network: Network, nbytes: float, rounds: int = 1) -> float:
    """Return the seconds of an exchange of these bytes in all its rounds."""
    waits = rounds * (network.latency + network.overhead)
    return waits + nbytes * network.seconds_per_byte
