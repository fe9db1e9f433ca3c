"""Steps of decentralized training on the parameters and buffers of a model."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..costs import ring_nbytes
from ..decentralized.state import STEP
from .decentralized_checkpoint import in_flight
from .decentralized_stats import DecentralizedStats

if TYPE_CHECKING:
    from ..communicator.communicator import Communicator
    from ..decentralized import Method, Topology
    from ..decentralized.step import Begun
    from ..stream.arrays import Values
    from .flat_parameters import FlatParameters
    from .running_buffers import RunningBuffers


@dataclass(frozen=True)
class Started:
    """A step that has started.

    Attributes:
        x: Values of the parameters before it.
        versions: Versions of the parameters, which change if they are modified.
        begun: Exchange in flight.
        sent: Bytes sent before.
    """

    x: Values
    versions: list[int]
    begun: Begun | None
    sent: int


class ModelMixer:
    """Mixes a model with the neighbours: `begin`, `before_update`, an update, `after_update`.

    Args:
        comm: The communicator; it belongs to this object.
        method: The method.
        parameters: Parameters that are mixed.
        buffers: Buffers that are mixed, if `method` has the same steps on all ranks; or None.
        overlap: Whether `begin` starts an exchange.

    Attributes:
        method: The method.
        state: Its state.
        stats: Statistics since the start.
    """

    def __init__(
        self,
        comm: Communicator,
        method: Method,
        parameters: FlatParameters,
        buffers: RunningBuffers | None,
        *,
        overlap: bool,
    ) -> None:
        self.comm, self.method, self.parameters = comm, method, parameters
        self._buffers = buffers if method.is_synchronous else None
        self._overlap = self._may_begin = overlap
        self.state = method.init(parameters.read())
        self.stats = DecentralizedStats()
        self._started: Started | None = None
        self._updating = False

    def begin(self) -> None:
        """Start the part of the next step that needs no gradient, unless it has started."""
        if self._started is not None or self._updating or not self._may_begin:
            return
        start, sent = time.perf_counter(), self._sent
        x, versions = self.parameters.read(), self.parameters.versions
        begun = self.method.begin(self.comm, x, self.state)
        if begun is None:
            self._may_begin = False  # the method has no such part
        else:
            self._started = Started(x, versions, begun, sent)
        self.stats = self.stats.plus(exposed=time.perf_counter() - start)

    def before_update(self) -> None:
        """Remember the model before the optimizer updates it.

        Raises:
            RuntimeError: If the model has changed since `begin`, on all ranks.
        """
        self.begin()  # ranks without a forward pass, where a closure computes the gradient
        versions = self.parameters.versions
        if self._started is None:
            self._started = Started(self.parameters.read(), versions, None, self._sent)
        elif self._started.versions != versions and not self._updating:
            self.fail(
                "parameters must not change between the forward pass and optimizer.step(), "
                "since their exchange has started; change them after the step, or pass "
                "overlap=False"
            )
        self._updating = True

    def after_update(self) -> None:
        """Replace the update of the parameters by a step of the method. Collective."""
        started, before = self._started, self.state
        assert started is not None, "a step ends that has not started"
        start, received = time.perf_counter(), self.comm.stats.received_messages
        update = started.x - self.parameters.read()
        x, self.state = self.method.step(
            self.comm,
            started.x,
            update,
            before,
            1.0,
            begun=started.begun,
            overwrite_state=True,
        )
        answers = self.comm.stats.received_messages - received
        self.parameters.write(x)
        if self._buffers is not None:
            self._buffers.mix(self.comm, self.method.topology, int(before[STEP]))
        self._started, self._updating = None, False
        dense_bytes = ring_nbytes(self.comm.size, self.parameters.nbytes)
        self.stats = self.stats.plus(
            steps=1,
            bytes=self._sent - started.sent,
            dense_bytes=int(dense_bytes),
            exposed=time.perf_counter() - start,
            late_steps=len(in_flight(self.state)),
            averages=answers if len(in_flight(before)) else 0,
        )

    def flush(self) -> None:
        """Complete the averages in flight of an asynchronous method. Collective."""
        if self.method.is_synchronous:
            return
        open_averages = len(in_flight(self.state))
        x, self.state = self.method.flush(self.comm, self.parameters.read(), self.state)
        self.parameters.write(x)
        self.stats = self.stats.plus(averages=open_averages)

    def mean(self) -> Values:
        """Return the mean of the parameters of all ranks. Collective."""
        mean: Values = self.method.mean(self.comm, self.parameters.read(), self.state)
        return mean

    def consensus_distance(self) -> float:
        """Return the root mean square distance from the mean. Collective."""
        x = self.parameters.read()
        distance = self.method.consensus_distance(self.comm, x)
        self.stats = replace(self.stats, consensus_distance=distance)
        return distance

    def change_topology(self, topology: Topology) -> None:
        """Use another topology from the next step on. Collective."""
        self.flush()
        self.cancel()
        self.method, self.state = self.method.change_topology(topology, self.state)

    def cancel(self) -> None:
        """Complete the exchange that has started, and drop its result. Collective."""
        started, self._started = self._started, None
        self._may_begin = self._overlap
        if started is not None and started.begun is not None:
            started.begun.request.wait()

    def fail(self, message: str) -> None:
        """Raise a RuntimeError on all ranks."""
        error = RuntimeError(f"Decentralized: {message}")
        self.comm.abort(error)
        raise error

    @property
    def _sent(self) -> int:
        return self.comm.stats.bytes
