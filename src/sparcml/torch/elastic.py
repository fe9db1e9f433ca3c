"""Local training of a model by workers that may die, be late or join."""

from __future__ import annotations

import copy
import time
from typing import TYPE_CHECKING, Any

from ..costs import ring_nbytes
from ..local.elastic import ElasticRounds
from ..local.quorum import Quorum
from ..local.round import Round
from ..local.state import STEP
from .decentralized import Decentralized
from .flat_parameters import parameters_of, trained_parameters
from .local_arguments import check_unused
from .local_training import LocalTraining
from .optimizer_handle import OptimizerHandle
from .optimizer_steps import OptimizerSteps

if TYPE_CHECKING:
    import torch


class ElasticTraining(OptimizerSteps):
    """Rounds that need a quorum of workers, around an unchanged training loop.

        store = torch.distributed.TCPStore(host, port, is_master=False)
        quorum = Quorum(store, member, workers=4, minimum=2, grace=10)
        method = sparcml.local.DiLoCo(sync_every=30)
        with sparcml.torch.ElasticTraining(model, optimizer, method, quorum) as training:
            while training.rounds < 100:
                ...
                optimizer.step()

    Creation waits for the workers that start together, or for the end of a round if they have
    started already, and sets the parameters to the shared ones. `sparcml.local.elastic` has what
    happens to workers that die, are late or join. Each worker is a process of its own, without
    init_process_group and torchrun, which would end with the first one that dies. Buffers and the
    state of the optimizer stay on their worker. Workers stop after the same round: steps after the
    last exchange are dropped at the end of the block.

    Args:
        model: The model, with parameters of float32 or float64 on one device.
        optimizer: Optimizer of all its parameters.
        method: A method of `sparcml.local` with one fragment and no delay.
        quorum: Decides who takes part in a round.
        timeout: Seconds to wait for a member in an exchange. Default: the grace period.

    Attributes:
        optimizer: The optimizer.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        method: Round,
        quorum: Quorum,
        timeout: float | None = None,
    ) -> None:
        name = type(self).__name__
        for value, kind, what in (
            (method, Round, "a method of rounds such as sparcml.local.DiLoCo(30)"),
            (quorum, Quorum, "a sparcml.local.quorum.Quorum"),
        ):
            if not isinstance(value, kind):
                parameter = "method" if kind is Round else "quorum"
                raise TypeError(f"{name}: {parameter} must be {what}, got {value!r}")
        check_unused(
            name, optimizer, (OptimizerSteps, LocalTraining, Decentralized, OptimizerHandle)
        )
        self._parameters = trained_parameters(
            name, model, optimizer, other="pass its module instead: model.module"
        )
        self.optimizer, self._model = optimizer, model
        self._elastic = ElasticRounds(method, quorum, timeout)
        x, self._state = self._elastic.join(self._parameters.read_by_name())
        self._parameters.write_by_name(x)
        self._watch(optimizer)

    @property
    def steps(self) -> int:
        """Number of completed inner steps; a worker that joins continues the count."""
        return int(self._state[STEP])

    @property
    def rounds(self) -> int:
        """Number of completed rounds of the shared model."""
        return self._elastic.rounds

    @property
    def members(self) -> tuple[int, ...]:
        """Workers of the last round."""
        return self._elastic.members

    def shared(self) -> torch.nn.Module:
        """Return a copy of the model with the shared parameters, for evaluation."""
        x = self._parameters.read_by_name()
        model = copy.deepcopy(self._model)
        shared = self._elastic.method.shared(x, self._state)
        parameters_of(model, self._parameters.names).write_by_name(shared)
        return model

    def finish(self) -> None:
        """Set the parameters to the shared ones, the same bits on all members."""
        x = self._parameters.read_by_name()
        self._parameters.write_by_name(self._elastic.method.shared(x, self._state))

    def close(self) -> None:
        """Remove the hooks from the optimizer and close the connections."""
        self._remove_hooks()
        self._elastic.close()

    def __repr__(self) -> str:
        return f"{self._elastic.method}, step={self.steps}, members={self.members}"

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Nothing."""

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        del optimizer, args, kwargs
        start = time.perf_counter()
        ends_round = self._elastic.method.exchanges(self.steps + 1)
        if ends_round:
            x = self._parameters.read_by_name()
            x, self._state = self._elastic.step(x, self._state)
            self._parameters.write_by_name(x)
        else:
            self._state = {**self._state, STEP: self._state[STEP] + 1}
        dense = int(ring_nbytes(len(self.members), self._parameters.nbytes))
        self._count(start, steps=1, exchanges=int(ends_round), dense_bytes=dense)

    @property
    def _sent(self) -> int:
        return self._elastic.bytes_sent
