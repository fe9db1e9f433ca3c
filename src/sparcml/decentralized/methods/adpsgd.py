"""ADPSGD: asynchronous averages of pairs; no rank waits for a slower one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...communicator.peer_channel import PeerChannel
from ...quantize.code import mix_seed
from ..base import Method
from ..requirements import (
    require_static,
    require_symmetric,
    two_coloring,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...communicator.communicator import Communicator
    from ...stream.arrays import Values
    from ..state import State
    from ..step import Step
    from ..topologies import Topology

IN_FLIGHT = "in_flight"
REQUEST, REPLY, END = range(3)  # kinds of messages


@dataclass(frozen=True)
class ADPSGD(Method):
    """Asynchronous decentralized parallel SGD.

        pick a random neighbour j:  x_i, x_j <- (x_i + x_j) / 2
        x_i <- x_i - lr g_i                                   g_i at the x_i before

    The graph is bipartite. Ranks of one side are active: they start averages. Ranks of the other
    side are passive: they answer. So ranks never wait for each other in a circle. In detail, an
    active rank i sends x_i and continues. When the passive rank j looks at its messages in its
    next step, it computes d = (x_i - x_j) / 2, adds d to x_j and replies d; rank i subtracts d as
    soon as it arrives. What rank i did in between stays, so this is the average above with a
    gradient that is some steps late, and the sum of all models is kept.

    No step waits. A slow rank answers late, and at most one average per edge is open; its
    neighbours train on and average with others. Ranks may make different numbers of steps. The
    first step and `flush` are collective; call `flush` at the end of the training, before a
    checkpoint, and before `mean`.

    The results depend on the timing of the ranks: two runs are equal in a simulation only.

    State: `in_flight`, the ranks whose answer this one awaits. A state with any of them cannot be
    saved; `flush` leaves none. Then a change of topology keeps the models, and a change of the
    world size starts with their mean.

    Reference: Lian, Zhang, Zhang, Liu: Asynchronous Decentralized Parallel Stochastic Gradient
    Descent, ICML 2018.

    Args:
        topology: Bipartite and the same in every step, such as a ring of an even number of ranks;
            its weights are not used.
        seed: Random seed of the choice of neighbours.
    """

    name: ClassVar[str] = "adpsgd"
    number: ClassVar[int] = 10
    is_synchronous: ClassVar[bool] = False

    seed: int = 0

    def _check_topology(self) -> None:
        require_symmetric(self, self.topology)
        require_static(self, self.topology)
        if two_coloring(self.topology) is None:
            raise ValueError(
                f"ADPSGD: topology must be bipartite, so that ranks cannot wait for each other "
                f"in a circle, got {self.topology.name}; use a ring of an even number of "
                f"ranks, a star or a tree"
            )

    def is_active(self, rank: int) -> bool:
        """Return whether a rank starts averages; rank 0 does."""
        colors = two_coloring(self.topology)
        return colors is not None and colors[rank]

    def init(self, x: Any, state: State | None = None) -> State:
        """Return the state before the first step, see `Method.init`."""
        return {**super().init(x, state), IN_FLIGHT: np.empty(0, np.int64)}

    def change_topology(self, topology: Topology, state: State) -> tuple[ADPSGD, State]:
        """Return the method on another topology, see `Method.change_topology`."""
        _require_flushed("change_topology", state)
        method, kept = super().change_topology(topology, state)
        return method, {**kept, IN_FLIGHT: np.empty(0, np.int64)}

    def reshard(
        self, models: Sequence[Any], states: Sequence[State], topology: Topology
    ) -> tuple[ADPSGD, Any, State]:
        """Return method, model and state for another world size, see `Method.reshard`."""
        for state in states:
            _require_flushed("reshard", state)
        return super().reshard(models, states, topology)

    def flush(self, comm: Communicator, x: Any, state: State) -> tuple[Any, State]:
        """Complete the averages in flight. Collective.

        Every rank answers the others until all of them have called this.
        """
        model = self._prepare("flush", comm, x, state)
        pairs = self._pairs(comm, state)
        values = model.values.copy()
        peers = self.topology.neighbors(comm.rank)
        if self.is_active(comm.rank):
            for peer in peers:
                pairs.channel.send(peer, END, np.empty(0, values.dtype))

            def awaited() -> set[int]:
                pairs.receive_replies(values)
                return pairs.in_flight
        else:

            def awaited() -> set[int]:
                pairs.answer(peers, values)
                return set(peers) - pairs.ended

        if peers:
            pairs.channel.wait_until(lambda: not awaited(), peers[0], "flush")
        pairs.ended.clear()
        pairs.channel.finish_sends()
        return model.back(values), {**state, IN_FLIGHT: np.empty(0, np.int64)}

    def _mean(self, comm: Communicator, values: Values, state: State | None) -> Values:
        if state is None:
            raise ValueError("mean: state must be that of this rank for ADPSGD, got None")
        _require_flushed("mean", state)
        return super()._mean(comm, values, state)

    def _step(self, call: Step, x: Values, g: Values, state: State) -> tuple[Values, State]:
        pairs = self._pairs(call.comm, state)
        values = x.copy()
        pairs.receive_replies(values)
        values -= call.update(g)
        if self.is_active(call.rank):
            free = [peer for peer in call.neighbors if peer not in pairs.in_flight]
            if free:
                draw = mix_seed(self.seed, call.number, call.rank)
                peer = free[(draw >> 32) % len(free)]  # low bits of the hash are weak
                pairs.channel.send(peer, REQUEST, values)
                pairs.in_flight.add(peer)
        else:
            pairs.answer(call.neighbors, values)
        flight = np.array(sorted(pairs.in_flight), np.int64)
        return values, {**state, IN_FLIGHT: flight}

    def _pairs(self, comm: Communicator, state: State) -> Pairs:
        """Return the exchanges of a communicator; the first call is collective."""
        pairs = comm.cache.get(Pairs)
        if pairs.opened is None:
            pairs.opened = PeerChannel(comm)
        if set(state.get(IN_FLIGHT, ())) != pairs.in_flight:
            raise ValueError(
                f"step: state must be that of the last step, got answers of ranks "
                f"{list(state.get(IN_FLIGHT, ()))} in flight in place of "
                f"{sorted(pairs.in_flight)}; call flush before a state is saved or replaced"
            )
        return pairs


@dataclass
class Pairs:
    """Exchanges of a rank with its neighbours; a communicator caches it.

    Attributes:
        opened: The channel, once it has been created.
        in_flight: Passive ranks that have not answered this one yet.
        ended: Active ranks that have called `flush`, if this one has not completed it.
    """

    opened: PeerChannel | None = None
    in_flight: set[int] = field(default_factory=set)
    ended: set[int] = field(default_factory=set)

    @property
    def channel(self) -> PeerChannel:
        """The channel."""
        assert self.opened is not None
        return self.opened

    def receive_replies(self, values: Values) -> None:
        """Subtract what passive ranks have replied; without waiting."""
        for peer in sorted(self.in_flight):
            message = self.channel.poll(peer)
            if message is not None:
                values -= message[1].raw_values
                self.in_flight.discard(peer)

    def answer(self, peers: list[int], values: Values) -> None:
        """Answer the requests that have arrived; without waiting."""
        for peer in peers:
            # What follows the end of a rank's requests belongs to the time after the flush.
            while peer not in self.ended:
                message = self.channel.poll(peer)
                if message is None:
                    break
                kind, stream = message
                if kind == END:
                    self.ended.add(peer)
                    break
                half = (stream.raw_values - values) * values.dtype.type(0.5)
                values += half
                self.channel.send(peer, REPLY, half)


def _require_flushed(function: str, state: State) -> None:
    if len(state.get(IN_FLIGHT, ())):
        raise ValueError(
            f"{function}: state must have no averages in flight, got those with ranks "
            f"{list(state[IN_FLIGHT])}; call flush first"
        )
