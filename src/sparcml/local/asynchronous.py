"""A server and its workers: each worker exchanges at the end of its round, and waits for no other.

They meet in a store of torch.distributed, such as a TCPStore; there is no group of ranks. A worker
that dies is not missed, and one that starts later receives the model. The store and the server are
single points of failure: save the server's state.

1. A worker writes its change, takes the next number of arrival and announces itself under it.
2. The server answers arrivals in the order of their numbers, each with the new model.
"""

from __future__ import annotations

import json
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..aggregate.flat_model import flatten
from ..errors import TransportError
from ..validation import as_integer, as_seconds
from .state import SHARED

if TYPE_CHECKING:
    from collections.abc import Callable

    from .delayed_nesterov import DelayedNesterov
    from .state import State

PAUSE = 0.005  # seconds between two looks into the store
ARRIVED = "arrived"  # number of arrivals
ANSWERED = "answered"  # number of answered arrivals, and the highest speed among them
ENDED = "ended"  # set when the server answers no more


class Server:
    """Holds the shared model, and applies the changes of workers as they arrive.

        server = Server(store, DelayedNesterov(period=4), x)
        server.serve(arrivals=1000)
        server.close()
        x = server.model

    Args:
        store: A store of torch.distributed that all workers reach. In that of an earlier server,
            arrivals that it has not answered are answered next.
        rule: The outer optimizer.
        x: The first model: an array, or a mapping from names to arrays.
        state: State of an earlier server to continue from. Changes that it has answered after the
            state was saved are lost.
        grace: Seconds to wait for the announcement of a worker that has taken a number.

    Attributes:
        state: State of the rule, for a checkpoint.
        dropped: Arrivals without effect: of workers that died, or with values that are NaN.
    """

    def __init__(
        self,
        store: Any,
        rule: DelayedNesterov,
        x: Any,
        state: State | None = None,
        grace: float = 10.0,
    ) -> None:
        self._first = flatten("Server", x)
        self.store, self.rule = store, rule
        self.grace = as_seconds("Server", "grace", grace)
        self.state = rule.init(x) if state is None else state
        if self.state[SHARED].size != self._first.layout.size:
            raise ValueError(
                f"Server: state must be of a model with {self._first.layout.size} values, got "
                f"{self.state[SHARED].size}; pass the x that it was saved with"
            )
        self.dropped = 0
        self._answered, self._fastest = 0, 0.0
        if store.check([ANSWERED]):
            self._answered, self._fastest = json.loads(store.get(ANSWERED))
        store.delete_key(ENDED)

    @property
    def model(self) -> Any:
        """The shared model, in the form of x."""
        return self._first.back(self.state[SHARED].copy())

    def serve(self, arrivals: int, timeout: float = 1800.0) -> None:
        """Answer this many arrivals; another call continues.

        Args:
            arrivals: Number of arrivals. That of a worker that joins counts, too.
            timeout: Seconds to wait for each; it must exceed the time of a round.

        Raises:
            TransportError: If none comes.
        """
        limit = as_seconds("serve", "timeout", timeout)
        for _ in range(as_integer("serve", "arrivals", arrivals, minimum=0)):
            number = self._answered + 1
            if not _wait(partial(self._has_come, number), limit):
                raise TransportError(
                    f"Server: waited {limit:g} s for a worker, got none; start workers, or set "
                    f"timeout above the time of a round"
                )
            self._answered = number
            if _wait(partial(self.store.check, [f"{number}/arrival"]), self.grace):
                self._answer(number)
            else:
                self.dropped += 1
            self.store.set(ANSWERED, json.dumps([self._answered, self._fastest]))

    def close(self) -> None:
        """Tell the workers that the server answers no more: those that wait raise."""
        self.store.set(ENDED, "1")

    def _has_come(self, number: int) -> bool:
        return bool(self.store.add(ARRIVED, 0) >= number)

    def _answer(self, number: int) -> None:
        arrival = json.loads(self.store.get(f"{number}/arrival"))
        self._fastest = max(self._fastest, arrival["speed"])
        if arrival["change"]:
            self._apply(arrival["change"])
        shared = self.state[SHARED]
        answer = {
            "fastest": self._fastest,
            "size": shared.size,
            "dtype": shared.dtype.name,
        }
        self.store.set(f"{number}/model", shared.tobytes())
        self.store.set(f"{number}/answer", json.dumps(answer))
        if arrival["change"]:  # not before: a new server needs it if this one dies here
            self.store.delete_key(arrival["change"])

    def _apply(self, key: str) -> None:
        """Push the change of this key, or count it as dropped."""
        if not self.store.check([key]):  # get would wait for it
            self.dropped += 1
            return
        try:
            change = np.frombuffer(self.store.get(key), self.state[SHARED].dtype)
            self.state = self.rule.push(self.state, change)
        except ValueError:
            self.dropped += 1


class Worker:
    """Trains on its own, and exchanges with a server after each round.

        worker = Worker(store, member=3, sync_every=30)
        x = worker.join(x)
        x = x - lr * gradient(x)        # any optimizer
        x = worker.step(x)              # after each step of it

    Args:
        store: The store of the server.
        member: Number of this worker; no two have the same.
        sync_every: Inner steps per round of the fastest worker.
        dynamic: Let slower workers make fewer steps per round, in proportion to their speed, so
            that all rounds take the same time and no change is of a much older model.
        timeout: Seconds to wait for the server.

    Attributes:
        round_steps: Inner steps of the current round.
    """

    def __init__(
        self,
        store: Any,
        member: int,
        sync_every: int = 30,
        *,
        dynamic: bool = False,
        timeout: float = 1800.0,
    ) -> None:
        self.store, self.member = store, as_integer("Worker", "member", member, minimum=0)
        self.sync_every = as_integer("Worker", "sync_every", sync_every, minimum=1)
        self.timeout, self.dynamic = as_seconds("Worker", "timeout", timeout), dynamic
        self.round_steps = self.sync_every
        self._start: Any = None
        self._steps = self._rounds = 0
        self._since = 0.0

    def join(self, x: Any) -> Any:
        """Return the shared model, in the form of x."""
        return self._exchange(x, "", 0.0)

    def step(self, x: Any) -> Any:
        """Complete an inner step; return the shared model if it is the last of a round.

        Raises:
            TransportError: If the server does not answer.
        """
        if self._start is None:
            raise RuntimeError(
                "step: worker must have joined, got one that has not; call join(x) before the "
                "first step"
            )
        model = flatten("step", x)
        _check_model(model, self._start.size, self._start.dtype.name)
        self._steps += 1
        if self._steps < self.round_steps:
            return x
        speed = self._steps / max(time.monotonic() - self._since, 1e-9)
        self._rounds += 1
        key = f"change/{self.member}/{self._rounds}"
        change = self._start - model.values
        self.store.set(key, change.tobytes())
        return self._exchange(x, key, speed)

    def _exchange(self, x: Any, change: str, speed: float) -> Any:
        number = self.store.add(ARRIVED, 1)
        self.store.set(f"{number}/arrival", json.dumps({"change": change, "speed": speed}))
        answer = [f"{number}/answer"]

        def is_over() -> bool:
            return bool(self.store.check(answer) or self.store.check([ENDED]))

        # An answer that was written before the end counts.
        if _wait(is_over, self.timeout) and not self.store.check(answer):
            raise TransportError(
                f"Worker: worker {self.member} cannot exchange, because the server was closed; "
                f"raise the number of arrivals that it serves, or end the worker"
            )
        if not self.store.check(answer):
            raise TransportError(
                f"Worker: worker {self.member} waited {self.timeout:g} s for the server; start it "
                f"with the same store"
            )
        found, model = json.loads(self.store.get(f"{number}/answer")), flatten("step", x)
        shared = self.store.get(f"{number}/model")
        self.store.delete_key(f"{number}/model")
        _check_model(model, found["size"], found["dtype"])
        self._start = np.frombuffer(shared, model.values.dtype)
        if self.dynamic and speed:
            self.round_steps = max(
                1, int(self.sync_every * min(1.0, speed / found["fastest"]))
            )
        self._steps, self._since = 0, time.monotonic()
        return model.back(self._start.copy())


def _check_model(model: Any, size: int, dtype: str) -> None:
    """Raise a ValueError unless the flattened x is like the model of the server."""
    if (model.layout.size, model.values.dtype.name) != (size, dtype):
        raise ValueError(
            f"Worker: x must have {size} values of {dtype}, as on the server, got "
            f"{model.layout.size} of {model.values.dtype.name}; pass the same model to all of them"
        )


def _wait(is_done: Callable[[], bool], seconds: float) -> bool:
    """Return whether it becomes true within this time."""
    end = time.monotonic() + seconds
    while not is_done():
        if time.monotonic() > end:
            return False
        time.sleep(PAUSE)
    return True
