"""Which algorithm a communicator takes: by a network's costs, agreed on, or out of habit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..collectives import ALLREDUCES, Network, Shape, Workload
from ..collectives.agree import agree
from ..errors import MismatchError
from .arguments import candidates, coded, coded_bytes
from .auto import Explanation, TimePredictor, choose, explain
from .choice_cache import UNCHECKED, ChoiceCache

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ..quantize import Quantizer
    from ..stream import Stream
    from .session import Session


class AlgorithmSelector:
    """What one communicator goes by, the same on all its ranks.

    Attributes:
        network: What messages, bytes and entries are reckoned to cost.
    """

    def __init__(self, session: Session, network: Network) -> None:
        self._session = session
        self.set_network(network)

    def set_network(self, network: Network) -> None:
        """Take another network; what was chosen by the last one is forgotten."""
        self.network = network
        self._predictor = TimePredictor(network, self._session.transport.nodes)
        self._cache = ChoiceCache()

    def select(
        self, algorithm: str, x: Stream, op: str, quantize: Quantizer | None
    ) -> tuple[str, Hashable]:
        """The algorithm's name, agreed on where that is needed, and the kind of the call."""
        kind = (algorithm, Shape.of(x), op, quantize)
        if algorithm not in ("auto", UNCHECKED):
            return algorithm, kind
        if (usual := self._cache.choice(kind)) is not None:
            return usual, kind
        workload = self._agree(x, op, quantize)
        if algorithm != "auto":
            return algorithm, kind
        choice = choose(workload, self.network, candidates(op, quantize))
        self._cache.store(kind, choice)
        return choice, kind

    def record(
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
        predicted = self._predictor.seconds(algorithm, x.blocks, entry, x.nnz)
        self._session.stats.count_allreduce(algorithm, predicted, seconds)
        self._cache.record(kind, total.nnz)

    def explain(self, x: Stream, op: str, quantize: Quantizer | None) -> Explanation:
        """What `auto` would take, and what each algorithm would cost."""
        workload = self._agree(x, op, quantize)
        able = ALLREDUCES
        if quantize is not None:
            able = {name: ALLREDUCES[name] for name in candidates(op, quantize)}
        return explain(workload, self.network, able)

    def _agree(self, x: Stream, op: str, quantize: Quantizer | None) -> Workload:
        with self._session.call("agree", op, x) as call:
            workload = agree(call, x)
        if isinstance(workload, MismatchError):
            raise workload  # all ranks found it, and nothing is under way: still usable
        return workload if quantize is None else coded(workload, x.block, quantize)
