"""One step of a method on one rank: who the neighbours are, and exchanges with them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import kernels
from ..aggregate.flat_model import check_finite
from ..communicator.collective_errors import find_difference
from ..stream import Stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..aggregate.flat_model import Layout
    from ..communicator.communicator import Communicator
    from ..communicator.requests import Request
    from ..stream.arrays import Values
    from .topologies import Topology


@dataclass(frozen=True)
class Begun:
    """The part of a step that was started before the gradient was computed.

    Attributes:
        request: The exchange in flight.
        step: Number of the step.
    """

    request: Request
    step: int


@dataclass(frozen=True)
class Step:
    """One step on one rank.

    Attributes:
        comm: The communicator.
        topology: The topology.
        number: Number of completed steps.
        layout: Parameters of the model.
        lr: Learning rate.
        begun: Exchange that was started by `begin`.
        reused: Arrays of the old state that the new one may overwrite.
    """

    comm: Communicator
    topology: Topology
    number: int
    layout: Layout
    lr: float = 0.0
    begun: Begun | None = None
    reused: Sequence[Values] = ()

    @property
    def rank(self) -> int:
        """This rank."""
        return self.comm.rank

    @cached_property
    def neighbors(self) -> list[int]:
        """Ranks that this one receives from, ascending."""
        return list(self.topology.neighbors(self.rank, self.number))

    @cached_property
    def receivers(self) -> list[int]:
        """Ranks that receive from this one, ascending."""
        return list(self.topology.receivers(self.rank, self.number))

    @cached_property
    def weights(self) -> tuple[float, Mapping[int, float]]:
        """Weight of this rank's vector, and those of its neighbours."""
        return self.topology.weights(self.rank, self.number)

    def update(self, g: Values) -> Values:
        """Return the learning rate times the gradient."""
        scaled: Values = g * g.dtype.type(self.lr)
        return scaled

    def descend(self, x: Values, g: Values, base: Values | None = None) -> Values:
        """Return x - lr g, minus `base` if there is one."""
        return kernels.weighted_sum([1.0], [x], rate=self.lr, g=g, base=base)

    def difference(self, x: Values, g: Values, base: Values) -> Values:
        """Return x - lr g - base; raise a ValueError if x or g is not finite."""
        found, finite = kernels.checked_sum([1.0], [x], rate=self.lr, g=g, base=base)
        if not finite:
            check_finite(self.rank, "the model", x)
            check_finite(self.rank, "the gradient", g)
        return found

    def may_overwrite(self, values: Values) -> bool:
        """Return whether this is an array of the old state that the new one may overwrite."""
        return any(values is each for each in self.reused)

    def mix(self, x: Values) -> Values:
        """Return the weighted mean of x over this rank and its neighbours. Collective."""
        if self.begun is not None:
            raise ValueError(
                "step: begun must be None, since this method starts nothing before the gradient"
            )
        mixed: Values = self.comm.neighbor_allreduce(x, self.topology, self.number)
        return mixed

    def begin_mix(self, x: Values) -> Begun:
        """Start `mix`; `finish_mix` returns its result. Collective."""
        request = self.comm.ineighbor_allreduce(x, self.topology, self.number)
        return Begun(request, self.number)

    def finish_mix(self, x: Values) -> Values:
        """Return the result of `mix`, which may have been started by `begin_mix`."""
        if self.begun is None:
            return self.mix(x)
        if self.begun.step != self.number:
            raise ValueError(
                f"step: begun must be the result of begin() in this step, {self.number}, got "
                f"{self.begun!r}"
            )
        mixed: Values = self.begun.request.wait()
        return mixed

    def weighted_sum(
        self,
        own: Values,
        others: Mapping[int, Values],
        g: Values | None = None,
        base: Values | None = None,
    ) -> Values:
        """Return the sum of vectors of this rank and its neighbours by their weights.

        It has the bits of `mix`, if that received these vectors. lr g and `base` are subtracted
        if they are given.
        """
        own_weight, weights = self.weights
        terms = {self.rank: (own_weight, own)}
        terms.update((rank, (weights[rank], others[rank])) for rank in weights)
        ordered = [terms[rank] for rank in sorted(terms) if terms[rank][0] != 0]
        used, vectors = zip(*ordered, strict=True)
        return kernels.weighted_sum(used, vectors, rate=self.lr, g=g, base=base)

    def add_differences(
        self,
        x: Values,
        own: Values,
        others: Mapping[int, Values],
        gamma: float = 1.0,
        g: Values | None = None,
    ) -> Values:
        """Return x - lr g + gamma times the sum over neighbours j of W_ij (others_j - own).

        It is formed in float64 and rounded once. Both ends of an edge compute the same difference
        with opposite signs, so the mean over all ranks is that of x - lr g up to rounding.
        """
        weights, vectors = self._ordered(others)
        return kernels.add_differences(
            x, own, weights, vectors, gamma=gamma, rate=self.lr, g=g
        )

    def add_differences_again(
        self,
        changed: Iterable[Stream],
        out: Values,
        x: Values,
        own: Values,
        others: Mapping[int, Values],
        gamma: float = 1.0,
        g: Values | None = None,
    ) -> Values:
        """Return the result of `add_differences`, given that of vectors before they changed.

        Args:
            changed: Streams whose entries were added to vectors; the rest is as it was.
            out: The result before. It is overwritten.
            x: As in `add_differences`, like the other arguments.
            own: Vector of this rank.
            others: Vectors of its neighbours.
            gamma: Factor of the sum.
            g: Gradient.
        """
        weights, vectors = self._ordered(others)
        for stream in changed:
            if stream.raw_indices is None:
                return self.add_differences(x, own, others, gamma, g)
            kernels.add_differences_at(
                stream.raw_indices,
                stream.block,
                x,
                own,
                weights,
                vectors,
                out,
                gamma=gamma,
                rate=self.lr,
                g=g,
            )
        return out

    def _ordered(self, others: Mapping[int, Values]) -> tuple[list[float], list[Values]]:
        """Return weights and vectors of the neighbours in the order of their ranks."""
        _, weights = self.weights
        ranks = sorted(weights)
        return [weights[rank] for rank in ranks], [others[rank] for rank in ranks]

    def exchange(self, x: Any, **options: Any) -> Any:
        """Send x to the receivers, and return what the neighbours sent. Collective."""
        return self.comm.neighbor_exchange(x, self.receivers, self.neighbors, **options)

    def begin_exchange(self, x: Any) -> Request:
        """Start `exchange`; `wait` returns its result. Collective."""
        return self.comm.ineighbor_exchange(x, self.receivers, self.neighbors)

    def is_equal_everywhere(self, x: Values) -> bool:
        """Return whether all ranks have the same x. Collective."""
        crc = kernels.crc32c(np.ascontiguousarray(x).view(np.uint8))
        return find_difference(self.comm, {"x": crc}) is None


def as_stream(x: Values) -> Stream:
    """Return a vector as a dense stream."""
    return Stream.unchecked(x.size, None, x)
