"""Differences, tolerances and methods in words, and the table of results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tables import markdown

from sparcml import Adaptive, Compressed, Schedule

from .roster import DENSE, ROSTER
from .workloads import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparcml import Method

    from .judge import Judged
    from .workloads import Workload

OPTIMIZERS = {"sgd": "SGD", "adamw": "AdamW"}


def unit(work: Workload) -> str:
    """Return the unit of differences."""
    return "%" if work.relative else "points"


def scale(work: Workload) -> float:
    """Return the factor from saved differences to the unit."""
    return 100.0 if work.relative else 1.0


def tolerance(work: Workload) -> str:
    """Return the tolerance with its unit."""
    return f"{scale(work) * work.tolerance:g} {unit(work)}"


def title(row: Judged) -> str:
    """Return the title of a method, with its multiple of the learning rate."""
    name = ROSTER[row.method].title
    return name if row.multiple == 1 else f"{name}, x{row.multiple:g}"


def difference(row: Judged) -> str:
    """Return the mean difference and its standard error, without a unit."""
    if row.score is None:
        return "diverged"
    factor = scale(WORKLOADS[row.network])
    return f"{factor * row.difference:+.2f} ± {factor * row.error:.2f}"


def with_unit(row: Judged) -> str:
    """Return the same with its unit."""
    if row.score is None:
        return "diverged"
    return f"{difference(row)} {unit(WORKLOADS[row.network])}"


def results(work: Workload, rows: Sequence[Judged]) -> str:
    """Return a table with one row per method, learning rate and world size."""
    head = ["method", "ranks", "score", f"difference ({unit(work)})", "met"]
    head += ["worst from step 300", "compression ratio", "seeds"]
    return markdown(head, [_cells(row) for row in rows])


def _cells(row: Judged) -> list[str]:
    score = "diverged" if row.score is None else f"{row.score:.3f}"
    judged = ["", "", ""]
    if row.score is None:
        judged = ["", "no", ""]
    elif row.method != DENSE or row.multiple != 1:
        judged = [difference(row), yes(within=row.within), f"{row.worst:+.1%}"]
    ranks = "any" if row.ranks == 1 else str(row.ranks)
    return [title(row), ranks, score, *judged, f"{row.ratio:,.1f}x", str(row.seeds)]


def yes(*, within: bool) -> str:
    """Return yes or no."""
    return "yes" if within else "no"


def described(method: Method) -> str:
    """Describe a method: entries, bits, error feedback."""
    if not isinstance(method, Compressed):
        return f"`{method}`"
    parts = []
    if isinstance(method.sparsify, Schedule):
        stages: Any = [sparsify for _, sparsify in method.sparsify.stages]
        first, last = (100 * stages[i].ratio for i in (0, -1))
        parts.append(f"`TopK` from {first:g} % to {last:g} % of the entries")
    elif method.sparsify is not None:
        parts.append(f"`{method.sparsify}`")
    if method.quantize is not None:
        parts.append(f"`{method.quantize}`")
    if isinstance(method, Adaptive):
        parts.append("a ratio per layer")
    parts.append("error feedback" if method.error_feedback else "no error feedback")
    return ", ".join(parts)
