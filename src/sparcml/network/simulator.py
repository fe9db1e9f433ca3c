"""Simulation of a program on virtual ranks, in one thread and on a virtual clock.

The clock advances for messages, for the additions and the encoding that collectives
declare, and for `comm.advance(seconds)`. Everything else takes no time: the program's own
computations are carried out, but their duration here would not apply to other machines.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from ..collectives import ALLREDUCES
from ..communicator.communicator import Communicator
from ..communicator.rank_runner import RankRunner
from ..costs import Network, Workload
from ..costs.estimate import estimate, shared
from ..observe import Stats
from ..observe.timeline import Timeline
from ..transport import Nodes
from ..transport.timeouts import Timeouts, resolve_timeouts
from ..validation import as_integer, check_callable
from .presets import network as by_name
from .probe import probe

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..observe.timeline import EventArgs
    from ..transport import Transport
    from ..transport.virtual.cluster import Cluster
    from ..transport.virtual.links import Link

T = TypeVar("T")

SHARED_MEMORY = Network(latency=1e-6, overhead=0.2e-6, seconds_per_byte=0.1e-9)
EVENTS = 100_000  # recorded by default


class Stragglers(ABC):
    """A distribution of random delays in seconds, added to each of a rank's computations.

    A collective waits for the slowest of P ranks, so for the largest of P delays. The expected
    maximum of Gaussian delays is about sqrt(2 ln P) standard deviations above the mean. That of
    exponential delays is (1 + 1/2 + ... + 1/P) means, about ln P.
    """

    @abstractmethod
    def draw(self, random: np.random.Generator) -> float:
        """Draw one delay."""

    def delays(self, seed: int) -> Callable[[int], float]:
        """Return a function that draws the next delay of a rank.

        Each rank has a random sequence of its own.
        """
        generators: dict[int, np.random.Generator] = {}

        def delay(rank: int) -> float:
            if rank not in generators:
                generators[rank] = np.random.default_rng([seed, rank])
            return self.draw(generators[rank])

        return delay


@dataclass(frozen=True)
class Gaussian(Stragglers):
    """Gaussian delays; negative ones shorten a computation, at most to 0 seconds."""

    deviation: float
    mean: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.deviation < float("inf"):
            raise ValueError(
                f"Gaussian: deviation must be finite and >= 0, got {self.deviation!r}"
            )

    def draw(self, random: np.random.Generator) -> float:
        """Draw one delay, which may be negative."""
        return float(random.normal(self.mean, self.deviation))


@dataclass(frozen=True)
class ExponentialDelay(Stragglers):
    """Exponentially distributed delays: mostly short, some long."""

    mean: float

    def __post_init__(self) -> None:
        if not 0 <= self.mean < float("inf"):
            raise ValueError(
                f"ExponentialDelay: mean must be finite and >= 0, got {self.mean!r}"
            )

    def draw(self, random: np.random.Generator) -> float:
        """Draw one delay."""
        return float(random.exponential(self.mean))


@dataclass(frozen=True, repr=False)
class Simulation(Generic[T]):
    """Results, times and traffic of a simulated run.

    Attributes:
        results: Return value of each rank.
        rank_seconds: Simulated time at which each rank ended.
        rank_bytes: Bytes sent by each rank.
        rank_messages: Messages sent by each rank.
    """

    results: list[T]
    rank_seconds: tuple[float, ...]
    rank_bytes: tuple[int, ...]
    rank_messages: tuple[int, ...]
    _timelines: tuple[Timeline, ...] = field(default=(), compare=False)
    _dropped: int = field(default=0, compare=False)

    def __repr__(self) -> str:
        return (
            f"Simulation(ranks={len(self.results)}, seconds={self.seconds:g}, "
            f"bytes={self.bytes}, messages={self.messages})"
        )

    @property
    def seconds(self) -> float:
        """Simulated time at which the last rank ended."""
        return max(self.rank_seconds)

    @property
    def bytes(self) -> int:
        """Bytes sent by all ranks."""
        return sum(self.rank_bytes)

    @property
    def messages(self) -> int:
        """Messages sent by all ranks."""
        return sum(self.rank_messages)

    @cached_property
    def trace(self) -> dict[str, Any]:
        """Events of all ranks; `json.dump` writes a file that Perfetto opens."""
        metadata = {"run": "simulation", "events left out": self._dropped}
        events = [event for timeline in self._timelines for event in timeline.drain()]
        return {"otherData": metadata, "traceEvents": events}


@dataclass
class _EventBudget:
    """Number of events that may still be recorded, and of those that were dropped."""

    remaining: int
    dropped: int = 0


class _BoundedTimeline(Timeline):
    """The events of one rank, as long as the budget of all ranks lasts."""

    def __init__(self, transport: Transport, budget: _EventBudget) -> None:
        super().__init__(transport)
        self._budget = budget

    def add(self, name: str, start: float, end: float, args: EventArgs) -> None:
        """Add an event of the current task."""
        if self._budget.remaining:
            self._budget.remaining -= 1
            super().add(name, start, end, args)
        else:
            self._budget.dropped += 1


def simulate(
    fn: Callable[[Communicator], T],
    ranks: int = 64,
    network: str | Network = "1gbit",
    *,
    ranks_per_node: int = 1,
    intra_node: str | Network = SHARED_MEMORY,
    slow: Mapping[int | tuple[int, int], float] | None = None,
    speed: float | Sequence[float] | Mapping[int, float] = 1.0,
    stragglers: Stragglers | None = None,
    seed: int = 0,
    timeout: float | None = None,
    trace: int = EVENTS,
) -> Simulation[T]:
    """Run fn(comm) on simulated ranks.

    The ranks take turns in this thread, in an order that depends on the program alone:
    two runs give the same bits, times and trace. Messages are passed by reference, and
    only the return value of each rank is retained.

    Args:
        fn: The program of each rank.
        ranks: Number of ranks.
        network: Network between nodes: a preset, a bandwidth with or without a latency,
            or a `Network`; see `network()`.
        ranks_per_node: Number of consecutive ranks that share a node and its link.
        intra_node: Network between the ranks of a node. Default: memory at 10 GB/s.
        slow: Slowdown factor of a rank's link, by rank, or of the path between two ranks,
            by (source, target).
        speed: Speed factor of computations, for all ranks or by rank.
        stragglers: Delays of each `comm.advance`.
        seed: Random seed of these delays.
        timeout: Simulated seconds until a wait raises. Default: no limit.
        trace: Maximum number of events recorded for `trace`; 0 records none.

    Raises:
        BaseException: The exception of the first rank that raised; the others end with it.
            Ranks that all wait for each other raise at once.
    """
    check_callable("simulate", fn)
    ranks = as_integer("simulate", "ranks", ranks, minimum=1)
    ranks_per_node = as_integer("simulate", "ranks_per_node", ranks_per_node)
    if ranks_per_node < 1 or ranks % ranks_per_node:
        raise ValueError(
            f"simulate: ranks_per_node must divide ranks={ranks}, got {ranks_per_node}"
        )
    # Simulated collectives take their declared cost; calibrations are of real ones.
    model = replace(by_name(network), burst=0.0, calibration=())
    from ..transport.virtual.cluster import Cluster, Work  # greenlet, loaded on demand
    from ..transport.virtual.links import Links

    near = _link(by_name(intra_node))
    links = Links(ranks, _link(model), near, ranks_per_node, _check_slow(slow, ranks))
    nodes = Nodes(tuple(rank // ranks_per_node for rank in range(ranks)), near)
    model = shared(model, ranks_per_node)
    work = Work(
        model.seconds_per_encoded,
        model.seconds_per_merged,
        model.seconds_per_written,
        partial(_native_seconds, model),
    )
    delay = None if stragglers is None else stragglers.delays(seed)
    cluster = Cluster(links, work, _speeds(speed, ranks), delay)
    return _run(fn, cluster, nodes, model, resolve_timeouts(timeout), trace)


def _run(
    fn: Callable[[Communicator], T],
    cluster: Cluster,
    nodes: Nodes,
    model: Network,
    timeouts: Timeouts,
    events: int,
) -> Simulation[T]:
    from ..transport.virtual.cluster import Channel
    from ..transport.virtual.transport import VirtualTransport

    ranks = len(cluster.speed)
    channel, runner = Channel(cluster, ranks), RankRunner(fn, ranks)
    budget = _EventBudget(events)
    ends: dict[int, float] = {}
    timelines: dict[int, Timeline] = {}

    def body(rank: int) -> None:
        transport = VirtualTransport(channel, rank, timeouts)
        transport.nodes = nodes
        stats = Stats(clock=transport.now)
        if events:
            stats.trace = timelines[rank] = _BoundedTimeline(transport, budget)
        runner.run(transport, Communicator(transport, model, stats, measure=probe))
        ends[rank] = transport.now()

    for rank in range(ranks):
        cluster.clock.spawn(partial(body, rank))
    cluster.clock.run(lambda: len(ends) == ranks, cluster.raise_deadlock)
    return Simulation(
        runner.results("simulated"),
        tuple(ends[rank] for rank in range(ranks)),
        tuple(cluster.sent),
        tuple(cluster.messages),
        tuple(timelines[rank] for rank in sorted(timelines)),
        budget.dropped,
    )


def _link(model: Network) -> Link:
    from ..transport.virtual.links import Link

    return Link(model.latency, model.overhead, model.seconds_per_byte)


def _native_seconds(model: Network, nodes: Nodes, values: int, itemsize: int) -> float:
    """Return the declared time of the engine's own dense allreduce."""
    workload = Workload(values, itemsize, (values,) * len(nodes.of), nodes)
    return estimate(ALLREDUCES["native"], workload, model).seconds


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
        raise ValueError(f"simulate: speed must have {ranks} values, got {len(speeds)}")
    for value in speeds:
        if not 0 < value < float("inf"):
            raise ValueError(f"simulate: speed must be finite and > 0, got {value!r}")
    return speeds


def _check_slow(
    slow: Mapping[int | tuple[int, int], float] | None, ranks: int
) -> Mapping[int | tuple[int, int], float]:
    for key, value in (slow or {}).items():
        _check_ranks("slow", key if isinstance(key, tuple) else (key,), ranks)
        if not 0 < value < float("inf"):
            raise ValueError(f"simulate: slow must be finite and > 0, got {value!r}")
    return slow or {}


def _check_ranks(
    parameter: str, given: Mapping[int, float] | Sequence[int], ranks: int
) -> None:
    for rank in given:
        if not 0 <= rank < ranks:
            raise ValueError(
                f"simulate: {parameter} must have ranks in [0, {ranks}), got {rank}"
            )
