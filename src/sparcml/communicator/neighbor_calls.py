"""Collectives with neighbours: arguments, call and result of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..collectives.agree_topology import agree_on_topology
from ..collectives.neighbor_allreduce import neighbor_allreduce
from ..collectives.neighbor_exchange import neighbor_exchange
from ..stream import Stream
from .arguments import check_finite, check_integers, copy_canonical, to_operand
from .endpoint import Endpoint
from .neighbor_arguments import (
    check_floats,
    check_quantizer,
    check_ranks,
    check_topology,
    mixing_of,
    to_outgoing,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..collectives.numbers import Number
    from ..costs import Network
    from ..observe import Stats
    from ..quantize import Quantizer
    from ..transport import Transport
    from .neighbor_arguments import TopologyLike
    from .requests import Request

MAX_AGREED = 256  # topologies that a communicator remembers


class NeighborCalls(Endpoint):
    """Collectives in which a rank communicates with its neighbours only."""

    def __init__(
        self, transport: Transport, stats: Stats | None, network: Network | None
    ) -> None:
        super().__init__(transport, stats, network)
        self._agreed: dict[int, None] = {}  # fingerprints of topologies, oldest first

    def neighbor_allreduce(
        self,
        x: Any,
        topology: TopologyLike,
        step: int = 0,
        quantize: Quantizer | None = None,
        *,
        seed: int | None = None,
    ) -> Any:
        """Return the weighted mean of x over this rank and its neighbours. Collective.

        Rank i gets the sum of W[i, j] x_j, where W is `topology.matrix(step)`. Each rank
        exchanges one message with each neighbour of this step, and none with other ranks.
        Before the first call with a topology all ranks compare it.

        Args:
            x: This rank's vector of floats. Absent entries of a stream count as 0.
            topology: A topology of `sparcml.decentralized`, the same on all ranks.
            step: Number of the step, for topologies that change from step to step.
            quantize: Encodes what is sent. The rank's own vector is not quantized. So the
                mean of all ranks is not preserved exactly; the methods of
                `sparcml.decentralized` compensate for this.
            seed: Random seed of the quantizer. Default: the number of the call.

        Returns:
            A read-only result of x's type, the same bits in every run.

        Raises:
            MismatchError: If ranks differ in topology, step, size, dtype or call order.
            TransportError: If a rank has raised, stalled or ended.
        """
        function = "neighbor_allreduce"
        step = check_topology(function, topology, step, self.size)
        check_quantizer(function, quantize)
        stream, restore = to_operand(function, x, "sum")
        check_floats(function, stream)
        self._session.check_open(function)
        check_finite(self, function, [stream], quantize)
        self._agree_on_topology(topology)
        mixing = mixing_of(topology, self.rank, step)
        detail = f" ({mixing.name.replace(',', '')})"
        with self._session.call(function, "mean", stream, quantize, seed, detail) as call:
            result = neighbor_allreduce(call, stream, mixing)
        return restore(result)

    def ineighbor_allreduce(
        self,
        x: Any,
        topology: TopologyLike,
        step: int = 0,
        quantize: Quantizer | None = None,
        *,
        seed: int | None = None,
    ) -> Request:
        """Start a neighbor_allreduce; `wait` returns its result. Collective."""
        step = check_topology("ineighbor_allreduce", topology, step, self.size)
        check_quantizer("ineighbor_allreduce", quantize)
        return self._submit(
            "ineighbor_allreduce",
            x,
            lambda c: c.neighbor_allreduce(x, topology, step, quantize, seed=seed),
        )

    def neighbor_exchange(
        self,
        x: Any,
        sends: Sequence[int],
        receives: Sequence[int],
        quantize: Quantizer | None = None,
        *,
        return_seen: bool = False,
        seed: int | None = None,
    ) -> Any:
        """Exchange vectors with some ranks; return the received ones by rank. Collective.

        All ranks call it, also those that neither send nor receive. A rank must be in the
        `receives` of exactly the ranks that are in its `sends`.

        Args:
            x: One vector or number for all receivers, or a dictionary with one for each.
                Vectors must have the same size and dtype on all ranks.
            sends: Ranks to send to, in this order.
            receives: Ranks to receive from.
            quantize: Encodes the vectors.
            return_seen: Also return x as its receivers decode it.
            seed: Random seed of the quantizer. Default: the number of the call.

        Returns:
            A dictionary of what each rank of `receives` sent, in its order, as x's type.
            With return_seen, a pair of it and of what the receivers decode: one vector, or a
            dictionary if x is one.
        """
        function = "neighbor_exchange"
        sends = check_ranks(function, "sends", sends, self.rank, self.size)
        receives = check_ranks(function, "receives", receives, self.rank, self.size)
        check_quantizer(function, quantize)
        out = to_outgoing(function, x, sends)
        if out.stream is not None:
            check_integers(function, out.stream, "sum", quantize)
        check_finite(self, function, out.streams, quantize)
        with self._session.call(function, "sum", out.stream, quantize, seed) as call:
            call.wants_seen = return_seen
            received, seen = neighbor_exchange(call, out.items, receives)
            if return_seen and not sends and isinstance(out.single, Stream):
                _, seen[self.rank] = call.encode(out.single, 0)
        parts = {rank: out.restore(received[rank]) for rank in receives}
        if not return_seen:
            return parts
        if quantize is None:
            seen = {peer: _copy(item) for peer, item in seen.items()}
        if isinstance(x, Mapping):
            return parts, {peer: out.restore(seen[peer]) for peer in sends}
        return parts, out.restore(next(iter(seen.values()))) if seen else x

    def ineighbor_exchange(
        self,
        x: Any,
        sends: Sequence[int],
        receives: Sequence[int],
        quantize: Quantizer | None = None,
        *,
        return_seen: bool = False,
        seed: int | None = None,
    ) -> Request:
        """Start a neighbor_exchange; `wait` returns its result. Collective."""
        function = "ineighbor_exchange"
        sends = check_ranks(function, "sends", sends, self.rank, self.size)
        receives = check_ranks(function, "receives", receives, self.rank, self.size)
        check_quantizer(function, quantize)

        def work(comm: Any) -> Any:
            return comm.neighbor_exchange(
                x, sends, receives, quantize, return_seen=return_seen, seed=seed
            )

        vectors = list(x.values()) if isinstance(x, Mapping) else x
        return self._submit(function, vectors, work)

    def _agree_on_topology(self, topology: TopologyLike) -> None:
        """Compare the topology over all ranks, unless they have done so before."""
        if self.size == 1 or topology.fingerprint in self._agreed:
            return
        with self._session.call("agree_topology", "mean", None) as call:
            self._session.transport.input_summary = topology.name
            mismatch = agree_on_topology(call, topology.fingerprint, topology.name)
        if mismatch is not None:
            raise mismatch  # on all ranks, and the communicator remains usable
        if len(self._agreed) == MAX_AGREED:
            del self._agreed[next(iter(self._agreed))]
        self._agreed[topology.fingerprint] = None


def _copy(item: Stream | Number) -> Stream | Number:
    """Return what can be given to the caller, who may change the sent vector later."""
    return copy_canonical(item) if isinstance(item, Stream) else item
