"""Selection of the allreduce algorithm: the lowest estimated time, agreed on by all ranks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING

from ..collectives import ALLREDUCES
from ..costs.estimate import TimePredictor, estimate
from ..costs.lower_bound import lower_bound_seconds
from ..errors import MismatchError
from ..observe.stats import html_table, text_table
from .choice_cache import Case, ChoiceCache

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..costs.estimate import Estimate
    from ..costs.network import Network
    from ..costs.workload import Workload
    from ..quantize import Quantizer
    from ..stream import Stream
    from .session import Session

NEAR = 1.03  # ratio of estimated times that counts as equal
SHORT_BYTES = 1 << 18  # bytes that take about as long as an empty message


@dataclass(frozen=True)
class Explanation:
    """Choice of `auto` for a vector, and the estimated cost of each algorithm.

    Attributes:
        workload: Input of the allreduce.
        network: Network model that the estimates use.
        estimates: Estimated costs, the fastest first.
        choice: Name of the algorithm that `auto` chooses.
        lower_bound: Seconds that every lossless allreduce needs.
        lossy_lower_bound: Seconds that every allreduce of the largest entries needs.
    """

    workload: Workload
    network: Network
    estimates: tuple[Estimate, ...]
    choice: str
    lower_bound: float
    lossy_lower_bound: float

    def percent(self, estimate: Estimate) -> float:
        """Return the lower bound as a percentage of the estimated time."""
        bound = self.lossy_lower_bound if estimate.lossy else self.lower_bound
        return 100 * bound / estimate.seconds if estimate.seconds else 100.0

    def __str__(self) -> str:
        if self.workload.ranks == 1:
            return "one rank: nothing is sent"
        return "\n".join([self._title(), text_table(self._table()), self._reason()])

    def _repr_html_(self) -> str:
        if self.workload.ranks == 1:
            return f"<p>{self}</p>"
        title, reason = escape(self._title()), escape(self._reason())
        return f"<p>{title}</p>\n{html_table(self._table())}\n<p>{reason}</p>"

    def _title(self) -> str:
        w = self.workload
        density = max(w.nnz) / w.blocks if w.blocks else 1.0
        return (
            f"{w.ranks} ranks, {w.blocks} entries of {w.entry_bytes:.4g} bytes, at most "
            f"{max(w.nnz)} nonzeros per rank (density {density:.3%})"
        )

    def _table(self) -> list[tuple[str, ...]]:
        head = ("algorithm", "messages", "bytes", "ms", "% of lower bound")
        rows = [
            (
                e.algorithm + " (lossy)" * e.lossy,
                f"{e.messages}",
                f"{e.nbytes:,.0f}",
                f"{e.seconds * 1e3:.3f}",
                f"{self.percent(e):.0f}",
            )
            for e in self.estimates
        ]
        return [head, *rows]

    def _reason(self) -> str:
        (chosen,) = [e for e in self.estimates if e.algorithm == self.choice]
        others = [e for e in self.estimates if e is not chosen and not e.lossy]
        other = others[0]
        if other.seconds < chosen.seconds and not ALLREDUCES[other.algorithm].is_dense:
            return (
                f"auto chooses {self.choice}: its estimate is within {NEAR - 1:.0%} of the best, "
                f"{other.algorithm}, and it encodes nothing"
            )
        if other.seconds < chosen.seconds and ALLREDUCES[self.choice].is_native:
            return (
                f"auto chooses {self.choice}: the engine has the dense algorithms above it "
                f"too, and uses them where they are best"
            )
        if other.seconds < chosen.seconds:
            return (
                f"auto chooses {self.choice}: the dense algorithms above it are considered "
                f"only after `sparcml probe` has measured them"
            )
        speedup = other.seconds / chosen.seconds if chosen.seconds else 1.0
        return (
            f"auto chooses {self.choice}: estimated {speedup:.2f}x faster than "
            f"{other.algorithm} (network model: {self.network.source})"
        )


def explain(workload: Workload, network: Network, names: Iterable[str]) -> Explanation:
    """Estimate the cost of each named algorithm, and return the choice of `auto`."""
    names = tuple(names)
    estimates = [
        estimate(ALLREDUCES[name], workload, network)
        for name in names
        if workload.is_hierarchical or not ALLREDUCES[name].multi_node
    ]
    bounds = (
        lower_bound_seconds(workload, network, lossy=lossy) for lossy in (False, True)
    )
    return Explanation(
        workload,
        network,
        tuple(sorted(estimates, key=_seconds)),
        choose(workload, network, names),
        *bounds,
    )


@lru_cache(maxsize=256)  # training repeats the same workloads
def choose(workload: Workload, network: Network, names: tuple[str, ...]) -> str:
    """Return the algorithm with the lowest estimate; ties go to the first name.

    The dense algorithms of this package are considered only if they were calibrated. Engines
    implement them too and encode nothing, so the native allreduce stands for all of them, and
    a small difference to its rough estimate does not displace it. Lossy algorithms have to
    be requested by name. Those for quantized values must not send more bytes than others.
    """
    considered = [
        a
        for a in (ALLREDUCES[name] for name in names)
        if not a.lossy
        and (network.calibration or a.is_native or not a.is_dense)
        and (workload.is_hierarchical or not a.multi_node)
    ]
    estimates = _without_longer([estimate(a, workload, network) for a in considered])
    best = min(estimates, key=_seconds)
    near = [e for e in estimates if e.seconds <= NEAR * best.seconds]
    native = (e for e in near if ALLREDUCES[e.algorithm].is_native)
    return next(native, best).algorithm


def _without_longer(estimates: list[Estimate]) -> list[Estimate]:
    """Drop the algorithms for quantized values that send more bytes than others.

    They save rounds, and decode all vectors on each rank, which estimates do not charge in
    full.
    """
    others = [e.nbytes for e in estimates if not ALLREDUCES[e.algorithm].quantized_only]
    fewest = min(others, default=float("inf"))
    return [
        e
        for e in estimates
        if e.nbytes <= fewest or not ALLREDUCES[e.algorithm].quantized_only
    ]


def supporting(op: str, quantize: Quantizer | None) -> tuple[str, ...]:
    """Return the names of the algorithms for an operation, with a quantizer or without."""
    quantized = quantize is not None
    once = quantize is not None and not quantize.quantizes_own  # the sum need not be
    return tuple(
        name
        for name, a in ALLREDUCES.items()
        if a.supports(op, quantized=quantized) and (once or not a.quantized_only)
    )


@lru_cache(maxsize=256)
def quantized_nbytes(block: int, quantizer: Quantizer) -> float:
    """Return the average bytes of one quantized block."""
    return quantizer.nbytes(1024 * block) / 1024


class AlgorithmSelector:
    """Selects the algorithms of one communicator, the same on all its ranks.

    Attributes:
        network: Network model that the estimates use.
    """

    def __init__(self, session: Session, network: Network) -> None:
        self._session = session
        self._cache = ChoiceCache()
        self.set_network(network)

    def set_network(self, network: Network) -> None:
        """Use another network model, and discard the choices made with the last one."""
        self.network = network
        self._predictor = TimePredictor(network, self._session.transport.nodes)
        self.reset()

    def reset(self) -> None:
        """Discard all cached choices, so that later ones do not depend on earlier calls."""
        self._cache.clear()
        if self._session.prepared is not None:
            self._session.prepared.clear()

    def select(
        self, algorithm: str, x: Stream, op: str, quantize: Quantizer | None
    ) -> tuple[str, Case]:
        """Return the algorithm of a call, agreed on where needed, and its case.

        Args:
            algorithm: Name of an algorithm, or "auto".
            x: Vector of this rank.
            op: Operation, as the caller names it.
            quantize: Quantizer of the call.
        """
        case = Case(algorithm, x.size, x.block, x.raw_values.dtype, op, quantize)
        if algorithm != "auto":
            if ALLREDUCES[algorithm].is_native:
                self._agree(x, op, quantize)  # engines do not detect a mismatch
            return algorithm, case
        if (cached := self._cache.choice(case)) is not None:
            return cached, case
        workload = self._agree(x, op, quantize)
        choice = choose(workload, self.network, supporting(op, quantize))
        # The native allreduce does not detect a mismatch, so its ranks agree in each call.
        self._cache.store(case, None if ALLREDUCES[choice].is_native else choice)
        return choice, case

    def pin(self, x: Stream, quantize: Quantizer | None) -> str:
        """Return the choice for sums of vectors with the nnz of x, made once for all calls.

        The native allreduce of gloo runs in threads that cost more than short messages, and
        ranks agree before it in each call: recursive doubling is faster for short vectors.
        """
        case = (x.size, x.nnz, x.block, x.dtype.char, quantize)
        choice = self._cache.pinned(case)
        if choice is None:
            workload = self._agree(x, "sum", quantize)
            choice = choose(workload, self.network, supporting("sum", quantize))
            is_gloo = self._session.transport.engine == "torch"
            if ALLREDUCES[choice].is_native and is_gloo and x.nbytes <= SHORT_BYTES:
                choice = "recursive_double"
            self._cache.pin(case, choice)
        return choice

    def record(
        self,
        algorithm: str,
        case: Case,
        x: Stream,
        quantize: Quantizer | None,
        result: Stream,
        seconds: float,
    ) -> None:
        """Record the result of a call, with its measured and its predicted seconds."""
        block, nbytes = x.block, x.block * x.raw_values.itemsize
        entry_bytes = nbytes if quantize is None else quantized_nbytes(block, quantize)
        predicted = self.count(algorithm, x.size // block, entry_bytes, x.nnz, seconds)
        choice = self._cache.record(case, result)
        asked, op = case.algorithm, case.op
        if op == "sum" and quantize is None and (asked != "auto" or choice is not None):
            self._session.prepare(asked, algorithm, choice, x, predicted)

    def count(
        self, algorithm: str, blocks: int, entry_bytes: float, nnz: int, seconds: float
    ) -> float:
        """Count the measured and the predicted seconds of a call; return the latter."""
        chosen = ALLREDUCES[algorithm]
        predicted = self._predictor.seconds(chosen, blocks, entry_bytes, nnz)
        self._session.stats.count_allreduce(algorithm, predicted, seconds)
        return predicted

    def explain(self, x: Stream, op: str, quantize: Quantizer | None) -> Explanation:
        """Return the choice of `auto`, and the estimated cost of each algorithm."""
        workload = self._agree(x, op, quantize)
        return explain(workload, self.network, supporting(op, quantize))

    def _agree(self, x: Stream, op: str, quantize: Quantizer | None) -> Workload:
        workload = self._session.agree(op, x, quantize)
        if isinstance(workload, MismatchError):
            raise workload  # on all ranks, and the communicator remains usable
        if quantize is None:
            return workload
        return replace(workload, entry_bytes=quantized_nbytes(x.block, quantize))


def _seconds(estimate: Estimate) -> float:
    return estimate.seconds
