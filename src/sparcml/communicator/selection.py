"""Selection of the allreduce algorithm: the lowest estimated time, agreed on by all ranks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING

from ..collectives import ALLREDUCES
from ..collectives.base import OP_NAMES
from ..costs.estimate import estimate
from ..costs.lower_bound import lower_bound_seconds
from ..errors import MismatchError
from ..kernels import _core
from ..observe.stats import html_table, text_table
from ..wire.header import DTYPE_CODES

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from ..costs.estimate import Estimate
    from ..costs.network import Network
    from ..costs.workload import Workload
    from ..quantize import Quantizer
    from ..stream import Stream
    from .session import Session

AUTO = "auto"  # the caller leaves the choice to the ranks
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


def case_of(x: Stream, op: str, quantize: Quantizer | None) -> _core.Case:
    """Return what the calls that share a choice have in common."""
    return _core.Case(x.size, x.block, DTYPE_CODES[x.dtype], OP_NAMES.index(op), quantize)


def estimated_nnz(result: Stream) -> int:
    """Return the nnz of a result; zeros of a dense one are left out, estimated if it is long."""
    if not result.is_dense:
        return result.nnz
    fill = result.fill if result.dtype.kind == "f" else int(result.fill)
    return _core.estimated_nnz(result.raw_values, result.block, fill)


class AlgorithmSelector:
    """Selects the algorithms of one communicator, the same on all its ranks."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._pinned: dict[Hashable, str] = {}

    def set_network(self, network: Network) -> None:
        """Use another network model, and discard the choices made with the last one."""
        self._session.set_network(network)
        self._pinned.clear()

    def reset(self) -> None:
        """Discard all choices, so that later ones do not depend on earlier calls."""
        self._session.reset()
        self._pinned.clear()

    def select(self, algorithm: str, x: Stream, op: str, quantize: Quantizer | None) -> str:
        """Return the algorithm of a call, agreed on where needed.

        Args:
            algorithm: Name of an algorithm, or "auto".
            x: Vector of this rank.
            op: Operation, as the caller names it.
            quantize: Quantizer of the call.
        """
        if algorithm != AUTO:
            if ALLREDUCES[algorithm].is_native:
                self._agree(x, op, quantize)  # engines do not detect a mismatch
            return algorithm
        case, choices = case_of(x, op, quantize), self._session.choices
        if (number := choices.choice(case)) is not None:
            cached = ALLREDUCES.name(number)
            assert cached is not None
            return cached
        choice = self._choose(x, op, quantize)
        # The native allreduce does not detect a mismatch, so its ranks agree in each call.
        is_native = ALLREDUCES[choice].is_native
        choices.store(case, None if is_native else ALLREDUCES.number(choice))
        return choice

    def pin(self, x: Stream, quantize: Quantizer | None) -> str:
        """Return the choice for sums of vectors with the nnz of x, made once for all calls.

        The native allreduce of gloo runs in threads that cost more than short messages, and
        ranks agree before it in each call: recursive doubling is faster for short vectors.
        """
        case = (x.size, x.nnz, x.block, x.dtype.char, quantize)
        choice = self._pinned.get(case)
        if choice is None:
            choice = self._choose(x, "sum", quantize)
            is_gloo = self._session.transport.engine == "torch"
            if ALLREDUCES[choice].is_native and is_gloo and x.nbytes <= SHORT_BYTES:
                choice = "recursive_double"
            self._pinned[case] = choice
        return choice

    def record(
        self, x: Stream, op: str, quantize: Quantizer | None, result: Stream
    ) -> None:
        """Record the result of a call whose algorithm `auto` has chosen."""
        self._session.choices.record(case_of(x, op, quantize), estimated_nnz(result))

    def explain(self, x: Stream, op: str, quantize: Quantizer | None) -> Explanation:
        """Return the choice of `auto`, and the estimated cost of each algorithm."""
        workload = self._agree(x, op, quantize)
        return explain(workload, self._session.network, supporting(op, quantize))

    def _choose(self, x: Stream, op: str, quantize: Quantizer | None) -> str:
        workload = self._agree(x, op, quantize)
        return choose(workload, self._session.network, supporting(op, quantize))

    def _agree(self, x: Stream, op: str, quantize: Quantizer | None) -> Workload:
        workload = self._session.agree(op, x, quantize)
        if isinstance(workload, MismatchError):
            raise workload  # on all ranks, and the communicator remains usable
        if quantize is None:
            return workload
        return replace(workload, entry_bytes=quantized_nbytes(x.block, quantize))


def _seconds(estimate: Estimate) -> float:
    return estimate.seconds
