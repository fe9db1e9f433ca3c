"""Methods that a plan compares: their allreduces in a step, and the costs of these.

A method describes itself by `planning(shapes)`. Methods are passed in by the callers, because
`aggregate` is a higher layer than this package.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..collectives import ALLREDUCES
from ..costs import CostTerms, Workload
from ..costs.lower_bound import lower_bound
from ..costs.network import cost_terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..costs import Network

    Shapes = Sequence[tuple[int, ...]]


class Reduction(NamedTuple):
    """One allreduce of a step.

    Attributes:
        size: Size of the vector.
        nnz: Nonzeros per rank.
        value_bytes: Bytes per value.
        algorithm: Algorithm of this allreduce, or None for the one that is compared.
    """

    size: int
    nnz: int
    value_bytes: float = 4.0
    algorithm: str | None = None


@dataclass(frozen=True)
class Planning:
    """Description of a method on the parameters of a model.

    Attributes:
        label: Name in tables.
        algorithms: Allreduce algorithms to compare.
        seconds_per_value: Seconds of the method's own work per value of the gradient.
        reductions: Allreduces of a step.
        ratio: Ratio of the sparsifier, if it has one.
        sequential: Whether each allreduce depends on the result of the one before.
    """

    label: str
    algorithms: tuple[str, ...]
    seconds_per_value: float
    reductions: tuple[Reduction, ...]
    ratio: float | None = None
    sequential: bool = False


EXACT, KEPT, NOT_KEPT, NOT_MEASURED = "exact", "kept", "not kept", "not measured"


@dataclass(frozen=True)
class Accuracy:
    """The accuracy of a method compared with dense training, as far as it was measured.

    Attributes:
        verdict: "exact", "kept", "not kept" or "not measured".
        worst: The largest loss that was measured, in few words; empty if there is none.
        measurement: The same with what was measured, and where the result is.
    """

    verdict: str
    worst: str = ""
    measurement: str = ""

    def __str__(self) -> str:
        return f"{self.verdict}: {self.worst}" if self.worst else self.verdict


class PlannedMethod(Protocol):
    """Aggregation method for the planner; `aggregate.Method` implements it."""

    @property
    def is_exact(self) -> bool:
        """Whether the result is the exact mean: the baseline of a plan."""

    def planning(self, shapes: Shapes) -> Planning:
        """Return the description for parameters of these shapes."""

    def with_algorithm(self, algorithm: str) -> PlannedMethod:
        """Return the method with an allreduce algorithm."""


@dataclass(frozen=True)
class Candidate:
    """A method with its description, and its accuracy if it matters to the plan."""

    method: PlannedMethod
    planning: Planning
    accuracy: Accuracy | None = None

    @property
    def name(self) -> str:
        """Name in tables."""
        return self.planning.label

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Allreduce algorithms to compare."""
        return self.planning.algorithms

    @property
    def lossy(self) -> bool:
        """Whether the allreduce itself drops entries."""
        return any(ALLREDUCES[name].lossy for name in self.algorithms)

    @property
    def may_be_recommended(self) -> bool:
        """Whether the accuracy is kept, or does not matter to the plan."""
        return self.accuracy is None or self.accuracy.verdict in (EXACT, KEPT)

    def code(self, algorithm: str) -> str:
        """Return the Python expression of the method with an algorithm."""
        text = expression(self.method.with_algorithm(algorithm))
        if steps := getattr(self.method, "steps", None):
            text += (
                f"  # for {steps:,} steps; or sparcml.torch.recommended(optimizer, steps)"
            )
        return text

    def cost(self, algorithm: str, ranks: int, network: Network) -> CostTerms:
        """Return the cost of all allreduces of a step."""
        total = CostTerms()
        for size, nnz, value_bytes, fixed in self.planning.reductions:
            used = ALLREDUCES[fixed or algorithm]
            total += cost_terms(used, ranks, size, nnz, value_bytes, network)
        return total

    def lower_bound(self, ranks: int) -> CostTerms:
        """Return the lower bound of all allreduces of a step.

        Allreduces that do not depend on each other may share their latencies.
        """
        bounds = [
            lower_bound(Workload(r.size, r.value_bytes, (r.nnz,) * ranks), lossy=self.lossy)
            for r in self.planning.reductions
            if r.size
        ]
        total = sum(bounds, CostTerms())
        if self.planning.sequential:
            return total
        return replace(total, rounds=max(bound.rounds for bound in bounds))


def expression(plug_in: Any) -> str:
    """Return Python that builds a method, with the settings that differ from the defaults.

    A number that the command line sets, such as the bits of a quantizer, is always shown.
    """
    option = getattr(plug_in, "option", "").lower()
    settings = [
        f"{field.name}={_literal(value)}"
        for field in fields(plug_in)
        if (value := getattr(plug_in, field.name)) != field.default or field.name == option
    ]
    return f"sparcml.{type(plug_in).__name__}({', '.join(settings)})"


def _literal(value: Any) -> str:
    if is_dataclass(value):
        return expression(value)
    if isinstance(value, tuple):
        items = ", ".join(map(_literal, value))
        return f"({items},)" if len(value) == 1 else f"({items})"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def planned_algorithms(*, sparse: bool = False, quantized: bool = False) -> tuple[str, ...]:
    """Return the allreduce algorithms that the planner compares.

    Args:
        sparse: Whether the vectors are sparse.
        quantized: Whether the values are quantized.
    """
    return tuple(
        a.name
        for a in ALLREDUCES.values()
        if a.planned
        and not a.lossy
        and not a.multi_node
        and (
            not a.is_dense
            if sparse
            else a.is_dense or (quantized and (a.dense_result or a.quantized_only))
        )
        and (a.supports_quantization if quantized else not a.quantized_only)
    )
