"""Local training of a model by workers that may die, be late or join."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..costs import ring_nbytes
from ..local.elastic import ElasticRounds
from ..local.quorum import Quorum
from ..local.round import Round
from ..local.state import STEP
from .decentralized import Decentralized
from .local_arguments import check_unused
from .local_training import LocalTraining
from .optimizer_handle import OptimizerHandle
from .optimizer_steps import OptimizerSteps
from .replica import Replica

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..local.state import State

VERSION = 1
FIELDS = frozenset(("version", "method", "state"))


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

    A worker that dies loses what it has not sent, unless it has saved `state_dict()` after its
    last round and loads it when it is started again.

    Args:
        model: The model, with parameters of float32 or float64 on one device.
        optimizer: Optimizer of all its parameters, or a wrapper such as Accelerate's around it.
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
        self._replica = Replica(name, model, optimizer)
        self.optimizer = optimizer
        self._elastic = ElasticRounds(method, quorum, timeout)
        x, self._state = self._elastic.join(self._replica.read())
        self._replica.write(x)
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
        return self._replica.copy_with(self._shared())

    def finish(self) -> None:
        """Set the parameters to the shared ones, the same bits on all members."""
        self._replica.write(self._shared())

    def state_dict(self) -> dict[str, Any]:
        """Return the state of this worker, to be saved with `torch.save` after each round.

        It has the shared model, the outer momentum, the number of rounds and inner steps, and
        what only this worker has: its parameters and its residual. Buffers and the optimizer's
        state are not part of it.
        """
        saved = self._elastic.save(self._replica.read(), self._state)
        return {
            "version": VERSION,
            "method": str(self._elastic.method),
            "state": {key: torch.from_numpy(value) for key, value in saved.items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state of the same worker, in a new process, before the first step.

        It sets the parameters. If the others have continued meanwhile, they are the current
        shared ones with the saved change of this worker, and its residual is kept. If all
        workers have started again, they continue from the newest shared model among their states.

        A state is dropped with a warning if the worker has exchanged after it was saved: what it
        has not sent by then is lost, and it continues from the shared model.

        Raises:
            ValueError: If the state is of another worker, method or model.
        """
        name, method = type(self).__name__, str(self._elastic.method)
        missing = FIELDS - set(state)
        if missing:
            raise ValueError(
                f"load_state_dict: state must be a result of {name}.state_dict(), got one without "
                f"{', '.join(sorted(missing))}; pass what was saved of it"
            )
        for what, own in (("version", VERSION), ("method", method)):
            if state[what] != own:
                raise ValueError(
                    f"load_state_dict: {what} of the state must be {own}, got {state[what]}; "
                    f"construct {name} as it was when it was saved"
                )
        saved: State = {key: np.array(value) for key, value in state["state"].items()}
        x, self._state = self._elastic.resume(self._replica.read(), self._state, saved)
        self._replica.write(x)

    def close(self) -> None:
        """Remove the hooks from the optimizer and close the connections."""
        self._remove_hooks()
        self._elastic.close()

    def __repr__(self) -> str:
        return f"{self._elastic.method}, step={self.steps}, members={self.members}"

    def _shared(self) -> Any:
        return self._elastic.method.shared(self._replica.read(), self._state)

    def _report(self, error: BaseException) -> None:
        """Nothing: the other workers continue without this one."""

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Nothing."""

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        del optimizer, args, kwargs
        start = time.perf_counter()
        self._replica.end_step(type(self).__name__)
        ends_round = self._elastic.method.exchanges(self.steps + 1)
        if ends_round:
            x, self._state = self._elastic.step(self._replica.read(), self._state)
            self._replica.write(x)
        else:
            self._state = {**self._state, STEP: self._state[STEP] + 1}
        dense = int(ring_nbytes(len(self.members), self._replica.parameters.nbytes))
        self._count(start, steps=1, exchanges=int(ends_round), dense_bytes=dense)

    @property
    def _sent(self) -> int:
        return self._elastic.bytes_sent
