"""The same program on ranks that do not exist: one thread, and a clock of its own.

Time passes for messages, for the additions and the coding that collectives declare, and
for `comm.advance(seconds)`. Everything else takes none: what a program really computes is
computed, but how long that takes here says nothing about another machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from ..collectives import ALLREDUCES, Network, Workload
from ..communicator.arguments import seconds_to_wait
from ..communicator.auto import estimate
from ..communicator.communicator import Communicator
from ..costs.node_cost import shared
from ..transport import Nodes, Stats
from .presets import network as by_name
from .probe import probe
from .simulation import BoundedTimeline, EventBudget, Simulation

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..transport.virtual.cluster import Cluster
    from ..transport.virtual.links import Link
    from .stragglers import Stragglers

T = TypeVar("T")

INSIDE = Network(
    latency=1e-6, overhead=0.2e-6, seconds_per_byte=0.1e-9
)  # memory that ranks share
EVENTS = 100_000


def simulate(
    fn: Callable[[Communicator], T],
    ranks: int = 64,
    network: str | Network = "1gbit",
    *,
    ranks_per_node: int = 1,
    inside: str | Network = INSIDE,
    slow: Mapping[int | tuple[int, int], float] | None = None,
    speed: float | Sequence[float] | Mapping[int, float] = 1.0,
    stragglers: Stragglers | None = None,
    seed: int = 0,
    timeout: float | None = None,
    trace: int = EVENTS,
) -> Simulation[T]:
    """Run fn(comm) on simulated ranks.

    The ranks take turns in this thread, in an order that depends on nothing but the
    program: the same run gives the same bits, times and trace every time. Messages are
    handed over by reference, and of each rank only what fn returns is kept.

    Args:
        fn: The program of each rank.
        ranks: How many.
        network: What connects the nodes: a preset, a rate with or without a latency, or
            a `Network`; see `network()`.
        ranks_per_node: Consecutive ranks that share a node, and its link to the others.
        inside: What connects the ranks of a node; by default, memory at 10 GB/s.
        slow: How many times slower than the others a rank's link is, by rank, or the way
            from one rank to another, by (source, target).
        speed: How many times faster than usual ranks compute: for all, or by rank.
        stragglers: A delay for each `comm.advance`: `Gaussian` or `ExponentialDelay`.
        seed: For these delays.
        timeout: Simulated seconds after which a wait is given up; as in `launch`.
        trace: How many events are kept for `trace`; 0 for none.

    Raises:
        BaseException: What the first rank to fail has raised; the others end with it.
            Ranks that all wait for each other raise at once.
    """
    if ranks < 1 or ranks != int(ranks):
        raise ValueError(
            f"simulate: ranks must be a whole number, at least 1, got {ranks!r}"
        )
    if ranks_per_node < 1 or ranks % ranks_per_node:
        raise ValueError(
            f"simulate: ranks_per_node must divide ranks, got {ranks_per_node} of {ranks}"
        )
    # Simulated sums take what they declare, whatever was measured of real ones.
    model = replace(by_name(network), burst=0.0, calibration=())
    from ..transport.virtual.cluster import Cluster, Work  # greenlets, where they are used
    from ..transport.virtual.links import Links

    near = _link(by_name(inside))
    links = Links(ranks, _link(model), near, ranks_per_node, _slow(slow, ranks))
    nodes = Nodes(tuple(rank // ranks_per_node for rank in range(ranks)), near)
    model = shared(model, ranks_per_node)
    work = Work(
        model.seconds_per_encoded,
        model.seconds_per_merged,
        model.seconds_per_written,
        partial(_native, model),
    )
    delay = None if stragglers is None else stragglers.delays(seed)
    cluster = Cluster(links, work, _speeds(speed, ranks), delay)
    return _run(fn, cluster, nodes, model, seconds_to_wait(timeout), trace)


def _run(
    fn: Callable[[Communicator], T],
    cluster: Cluster,
    nodes: Nodes,
    model: Network,
    timeout: float,
    events: int,
) -> Simulation[T]:
    from ..transport.virtual.channel import Channel
    from ..transport.virtual.transport import VirtualTransport

    ranks = len(cluster.speed)
    team = Channel(cluster, ranks)
    budget = EventBudget(events)
    results: dict[int, T] = {}
    ends: dict[int, float] = {}
    failures: list[tuple[int, BaseException, bool]] = []  # in the order they happened
    timelines: dict[int, BoundedTimeline] = {}

    def body(rank: int) -> None:
        transport = VirtualTransport(team, rank, timeout)
        transport.nodes = nodes
        stats = Stats(clock=transport.now)
        if events:
            stats.trace = timelines[rank] = BoundedTimeline(transport, budget)
        comm = Communicator(transport, model, stats, measure=probe)
        try:
            results[rank] = fn(comm)
        except BaseException as error:
            transport.abort(error)
            failures.append((rank, error, transport.control.is_origin))
        finally:
            transport.leave()
            comm.close()
            ends[rank] = transport.now()

    for rank in range(ranks):
        cluster.clock.spawn(partial(body, rank))
    cluster.clock.run(lambda: len(ends) == ranks, cluster.raise_deadlock)
    if failures:
        # Some ranks only report what another began.
        rank, cause, _ = next((f for f in failures if f[2]), failures[0])
        cause.add_note(f"on rank {rank} of {ranks} (simulated)")
        raise cause
    return Simulation(
        [results[rank] for rank in range(ranks)],
        tuple(ends[rank] for rank in range(ranks)),
        tuple(cluster.sent),
        tuple(cluster.messages),
        tuple(timelines[rank] for rank in sorted(timelines)),
        budget.missed,
    )


def _link(model: Network) -> Link:
    from ..transport.virtual.links import Link

    return Link(model.latency, model.overhead, model.seconds_per_byte)


def _native(model: Network, nodes: Nodes, values: int, each: int) -> float:
    """What a dense allreduce of the engine would take, by its declared cost."""
    workload = Workload(values, each, (values,) * len(nodes.of), nodes)
    return estimate("native", ALLREDUCES["native"], workload, model).seconds


def _speeds(
    speed: float | Sequence[float] | Mapping[int, float], ranks: int
) -> list[float]:
    if isinstance(speed, Mapping):
        _check_ranks("speed", speed, ranks)
        speeds = [speed.get(rank, 1.0) for rank in range(ranks)]
    elif isinstance(speed, Sequence):
        speeds = list(speed)
    else:
        speeds = [speed] * ranks
    if len(speeds) != ranks:
        raise ValueError(f"simulate: {len(speeds)} speeds were given for {ranks} ranks")
    for value in speeds:
        if not 0 < value < float("inf"):
            raise ValueError(f"simulate: speed must be finite and > 0, got {value!r}")
    return speeds


def _slow(
    slow: Mapping[int | tuple[int, int], float] | None, ranks: int
) -> Mapping[int | tuple[int, int], float]:
    for where, value in (slow or {}).items():
        ends = where if isinstance(where, tuple) else (where,)
        _check_ranks("slow", ends, ranks)
        if not 0 < value < float("inf"):
            raise ValueError(f"simulate: slow must be finite and > 0, got {value!r}")
    return slow or {}


def _check_ranks(what: str, given: Mapping[int, float] | Sequence[int], ranks: int) -> None:
    for rank in given:
        if not 0 <= rank < ranks:
            raise ValueError(f"simulate: {what} names rank {rank} of {ranks}")
