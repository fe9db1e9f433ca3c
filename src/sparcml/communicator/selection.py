"""Which algorithm a communicator takes: by a network's costs, agreed on, or out of habit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..collectives import ALLREDUCES, Network, Problem, Shape
from ..collectives.agree import agree
from ..errors import MismatchError
from .arguments import candidates, coded, coded_bytes
from .auto import Explanation, Forecast, choose, explain
from .choice_cache import UNCHECKED, Habit

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ..quantize import Quantizer
    from ..stream import Stream
    from .session import Session


class Choosing:
    """What one communicator goes by, the same on all its ranks.

    Attributes:
        network: What messages, bytes and entries are reckoned to cost.
    """

    def __init__(self, session: Session, network: Network) -> None:
        self._session = session
        self.reckon_with(network)

    def reckon_with(self, network: Network) -> None:
        """Take another network; what was chosen by the last one is forgotten."""
        self.network = network
        self._forecast = Forecast(network, self._session.transport.nodes)
        self._habit = Habit()

    def take(
        self, algorithm: str, x: Stream, op: str, quantize: Quantizer | None
    ) -> tuple[str, Hashable]:
        """The algorithm's name, agreed on where that is needed, and the kind of the call."""
        kind = (algorithm, Shape.of(x), op, quantize)
        if algorithm not in ("auto", UNCHECKED):
            return algorithm, kind
        if (usual := self._habit.choice(kind)) is not None:
            return usual, kind
        problem = self._agree(x, op, quantize)
        if algorithm != "auto":
            return algorithm, kind
        choice = choose(problem, self.network, candidates(op, quantize))
        self._habit.chose(kind, choice)
        return choice, kind

    def took(
        self,
        algorithm: str,
        kind: Hashable,
        x: Stream,
        quantize: Quantizer | None,
        total: Stream,
        seconds: float,
    ) -> None:
        """Count what a call took beside what it should have, by what is known here."""
        entry = x.entry_bytes if quantize is None else coded_bytes(x.block, quantize)
        predicted = self._forecast.seconds(algorithm, x.blocks, entry, x.nnz)
        self._session.stats.count_allreduce(algorithm, predicted, seconds)
        self._habit.got(kind, total.nnz)

    def explain(self, x: Stream, op: str, quantize: Quantizer | None) -> Explanation:
        """What `auto` would take, and what each algorithm would cost."""
        problem = self._agree(x, op, quantize)
        able = ALLREDUCES
        if quantize is not None:
            able = {name: ALLREDUCES[name] for name in candidates(op, quantize)}
        return explain(problem, self.network, able)

    def _agree(self, x: Stream, op: str, quantize: Quantizer | None) -> Problem:
        with self._session.call("agree", op, x) as call:
            problem = agree(call, x)
        if isinstance(problem, MismatchError):
            raise problem  # all ranks found it, and nothing is under way: still usable
        return problem if quantize is None else coded(problem, x.block, quantize)
