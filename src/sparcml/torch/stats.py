"""Statistics of a handle: traffic, time and norms, as a table or as scalars."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from math import sqrt
from typing import TYPE_CHECKING

from ..aggregate.error_feedback import squared_norm
from ..aggregate.state import RESIDUAL, keys_of
from ..aggregate.stats import SelectionStats
from ..costs import ring_nbytes
from ..observe.stats import html_table, text_table

if TYPE_CHECKING:
    from ..aggregate import Method
    from .reducer import GradientReducer

MB = 2**20
HIDDEN = 0.1  # fraction of the active time that may be exposed and still count as hidden
MANY = 8  # buckets from which on their number may dominate the cost

Entries = list[tuple[str, str]]


@dataclass(frozen=True)
class Stats:
    """Statistics of one rank since the start; `since` gives the difference to earlier ones.

    Attributes:
        steps: Steps that were applied.
        skipped: Steps that were skipped because gradients were not finite.
        bytes: Bytes sent.
        dense_bytes: Bytes that the best dense allreduce of the same gradients sends:
            2 (P - 1) / P times theirs. Sparse gradients count with their rows.
        exposed: Seconds that training waited for averages after the backward pass.
        active_seconds: Seconds of selecting, encoding, sending and waiting, including those
            hidden behind the backward pass.
        phases: Seconds by phase.
        selected_squares: Sum of squares of the selected entries.
        corrected_squares: Sum of squares of the corrected gradients they were selected from.
        residual_norm: Norm of the residual of this rank now.
        buckets: Bytes of each of DDP's buckets in the last step.
        note: Why nothing was counted, such as "auto: no hook: ..."; empty otherwise.
    """

    steps: int
    skipped: int
    bytes: int
    dense_bytes: int
    exposed: float
    active_seconds: float
    phases: dict[str, float]
    selected_squares: float
    corrected_squares: float
    residual_norm: float
    buckets: tuple[int, ...] = field(default=())
    note: str = ""

    @property
    def compression_ratio(self) -> float | None:
        """Dense bytes / sent bytes; None before anything was sent."""
        return self.dense_bytes / self.bytes if self.bytes else None

    @property
    def selected_norm(self) -> float | None:
        """Norm of the selected entries / norm of the corrected gradients.

        None if everything is sent.
        """
        if not self.corrected_squares:
            return None
        return sqrt(self.selected_squares / self.corrected_squares)

    def since(self, before: Stats | None) -> Stats:
        """Return the statistics after `before`; norm and buckets are the current ones."""
        if before is None:
            return self
        differences = {
            f.name: getattr(self, f.name) - getattr(before, f.name)
            for f in fields(self)
            if f.name not in ("phases", "residual_norm", "buckets", "note")
        }
        phases = {k: v - before.phases[k] for k, v in self.phases.items()}
        return replace(self, **differences, phases=phases)

    def scalars(self) -> dict[str, float]:
        """Return means over the steps by name; none if nothing was counted."""
        if self.note:
            return {}
        steps = max(1, self.steps + self.skipped)
        means = {
            "bytes": self.bytes / steps,
            "residual_norm": self.residual_norm,
            "skipped_steps": float(self.skipped),
            "seconds/exposed": self.exposed / steps,
            "seconds/active": self.active_seconds / steps,
            **{f"seconds/{name}": s / steps for name, s in self.phases.items()},
        }
        if self.compression_ratio is not None:
            means["compression_ratio"] = self.compression_ratio
        if self.selected_norm is not None:
            means["selected_norm"] = self.selected_norm
        return means

    def __str__(self) -> str:
        return self.note or text_table([("", "value"), *self._entries()])

    def _repr_html_(self) -> str:
        return html_table([("", "value"), *self._entries()])

    def _entries(self) -> Entries:
        if self.note:
            return [("note", self.note)]
        ratio, norm = self.compression_ratio, self.selected_norm
        return [
            ("steps", f"{self.steps:,}"),
            ("skipped steps", f"{self.skipped:,}"),
            ("bytes sent", f"{self.bytes:,}"),
            ("dense bytes", f"{self.dense_bytes:,}"),
            ("compression ratio", "-" if ratio is None else f"{ratio:.2f}"),
            ("selected norm", "-" if norm is None else f"{norm:.3f}"),
            ("residual norm", f"{self.residual_norm:.4g}"),
            ("exposed (s)", f"{self.exposed:.6f}"),
            ("active (s)", f"{self.active_seconds:.6f}"),
            *((f"  {name} (s)", f"{s:.6f}") for name, s in self.phases.items()),
            ("buckets (MB)", " ".join(f"{b / MB:.3g}" for b in self.buckets) or "-"),
        ]


def collect(
    reducer: GradientReducer,
    *,
    native_bytes: int = 0,
    exposed: float,
    active_seconds: float,
    buckets: tuple[int, ...] = (),
) -> Stats:
    """Return the statistics of a reducer and its communicator."""
    sent, ranks = reducer.comm.stats, reducer.comm.size
    selection = reducer.comm.cache.get(SelectionStats)
    residuals = [reducer.state[k] for k in keys_of(reducer.state, RESIDUAL)]
    return Stats(
        steps=reducer.applied,
        skipped=reducer.skipped,
        bytes=sent.bytes + native_bytes,
        dense_bytes=int(ring_nbytes(ranks, reducer.gradient_bytes)),
        exposed=exposed,
        active_seconds=active_seconds,
        phases=dict(sent.seconds),
        selected_squares=selection.selected_squares,
        corrected_squares=selection.corrected_squares,
        residual_norm=sqrt(sum(squared_norm(a) for a in residuals)),
        buckets=buckets,
    )


def table(entries: Entries) -> str:
    """Return names and texts in two columns."""
    width = max(len(name) for name, _ in entries)
    return "\n".join(f"{name:<{width}}  {text}" for name, text in entries)


def bucket_advice(stats: Stats, method: Method) -> Entries:
    """Return DDP's buckets, their cost, and advice on `bucket_cap_mb`."""
    sizes = stats.buckets
    if not sizes or not stats.active_seconds:
        return [("buckets", "no step has completed yet")]
    hidden = 1 - min(1.0, stats.exposed / stats.active_seconds)
    milliseconds = 1e3 * stats.active_seconds / max(1, stats.steps)
    return [
        ("buckets", f"{len(sizes)}, the largest of {max(sizes) / MB:.3g} MB"),
        ("active", f"{milliseconds:.3g} ms per step, {hidden:.0%} hidden"),
        ("advice", _advice(stats, method)),
    ]


def _advice(stats: Stats, method: Method) -> str:
    sizes, total = stats.buckets, sum(stats.buckets)
    if stats.exposed <= HIDDEN * stats.active_seconds:
        return "none, the size of the buckets is good"
    if total < 2 * MB:
        return "none, the gradients are too small to split"
    if len(sizes) == 1:
        return (
            f"nothing can be hidden with one bucket: try "
            f"DistributedDataParallel(..., bucket_cap_mb={max(1, total / MB / 4):.2g})"
        )
    if len(sizes) > MANY:
        return (
            f"each bucket costs messages of its own: try fewer, with bucket_cap_mb="
            f"{max(1, 4 * total / MB / len(sizes)):.2g}"
        )
    selects = hasattr(method, "ratio") or getattr(method, "sparsify", None) is not None
    return (
        f"mostly the last bucket of {sizes[-1] / MB:.3g} MB is exposed: try bucket_cap_mb="
        f"{max(1, max(sizes) / MB / 2):.2g}{', or a smaller ratio' if selects else ''}"
    )
