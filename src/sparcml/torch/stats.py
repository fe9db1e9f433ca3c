"""What compression has cost and saved, for people, for TensorBoard, and for advice."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from math import sqrt
from typing import TYPE_CHECKING

from ..aggregate.error_feedback import squared_norm
from ..aggregate.state import RESIDUAL, keys_of
from ..aggregate.stats import SelectionStats

if TYPE_CHECKING:
    from .reducer import GradientReducer

MB = 2**20
HIDDEN = 0.1  # of the work may be waited for and still count as hidden
MANY = 8  # buckets, from which on their number may be what costs


@dataclass(frozen=True)
class Stats:
    """Of one rank, since the start; `since` gives what came after another.

    Attributes:
        steps: That were made.
        skipped: That were not, because gradients were not finite under a GradScaler.
        bytes: Sent.
        dense_bytes: That the best dense sums of the same gradients would have sent: 2 (P - 1) / P
            times theirs. Sparse gradients count with the rows they have.
        exposed: Seconds that training has waited for sums after the backward pass.
        active_seconds: Seconds of selecting, coding, sending and waiting, hidden ones included.
        phases: Of these, by phase.
        squares_sent: Of what was selected, and
        squares_owed: of what it was selected from.
        residual_norm: Of all that this rank owes now.
        buckets: Bytes of each of DDP's buckets in the last step.
    """

    steps: int
    skipped: int
    bytes: int
    dense_bytes: int
    exposed: float
    active_seconds: float
    phases: dict[str, float]
    squares_sent: float
    squares_owed: float
    residual_norm: float
    buckets: tuple[int, ...] = field(default=())

    @property
    def compression_ratio(self) -> float | None:
        """How many times fewer bytes than dense; None before anything was sent."""
        return self.dense_bytes / self.bytes if self.bytes else None

    @property
    def selected_norm(self) -> float | None:
        """The part of the norm of what was owed that was selected; None if all is sent."""
        return sqrt(self.squares_sent / self.squares_owed) if self.squares_owed else None

    def since(self, before: Stats | None) -> Stats:
        """What came after `before`; norm and buckets are those of now."""
        if before is None:
            return self
        summed = {
            f.name: getattr(self, f.name) - getattr(before, f.name)
            for f in fields(self)
            if f.name not in ("phases", "residual_norm", "buckets")
        }
        phases = {k: v - before.phases[k] for k, v in self.phases.items()}
        return Stats(
            **summed, phases=phases, residual_norm=self.residual_norm, buckets=self.buckets
        )

    def scalars(self) -> dict[str, float]:
        """Means over the steps, by name."""
        steps = max(1, self.steps + self.skipped)
        found = {
            "bytes": self.bytes / steps,
            "residual_norm": self.residual_norm,
            "skipped_steps": float(self.skipped),
            "seconds/exposed": self.exposed / steps,
            "seconds/active": self.active_seconds / steps,
            **{f"seconds/{name}": s / steps for name, s in self.phases.items()},
        }
        if self.compression_ratio is not None:
            found["compression_ratio"] = self.compression_ratio
        if self.selected_norm is not None:
            found["selected_norm"] = self.selected_norm
        return found


def counted(
    reducer: GradientReducer,
    *,
    native_bytes: int = 0,
    exposed: float,
    active_seconds: float,
    buckets: tuple[int, ...] = (),
) -> Stats:
    """The statistics of a reducer and of those who work for it."""
    sent, ranks = reducer.comm.stats, reducer.comm.size
    selection = reducer.comm.cache.get(SelectionStats)
    owed = [reducer.state[k] for k in keys_of(reducer.state, RESIDUAL)]
    return Stats(
        steps=reducer.applied,
        skipped=reducer.skipped,
        bytes=sent.bytes + sent.native_bytes + native_bytes,
        dense_bytes=2 * (ranks - 1) * reducer.gradient_bytes // ranks,
        exposed=exposed,
        active_seconds=active_seconds,
        phases=dict(sent.seconds),
        squares_sent=selection.selected_squares,
        squares_owed=selection.corrected_squares,
        residual_norm=sqrt(sum(squared_norm(a) for a in owed)),
        buckets=buckets,
    )


def advice(stats: Stats) -> str:
    """What to do about the size of DDP's buckets."""
    sizes, total = stats.buckets, sum(stats.buckets)
    steps = max(1, stats.steps)
    if not sizes or not stats.active_seconds:
        return "no step has been made yet"
    what = f"{len(sizes)} buckets, the largest of {max(sizes) / MB:.3g} MB"
    hidden = 1 - min(1.0, stats.exposed / stats.active_seconds)
    took = f"{1e3 * stats.active_seconds / steps:.3g} ms a step, {hidden:.0%} of it hidden"
    if stats.exposed <= HIDDEN * stats.active_seconds:
        return f"{what}: {took}; they are fine"
    if total < 2 * MB:
        return f"{what}: {took}; there is too little to divide"
    if len(sizes) == 1:
        return (
            f"{what}: {took}; nothing can be hidden in one bucket: try "
            f"DistributedDataParallel(..., bucket_cap_mb={max(1, total / MB / 4):.2g})"
        )
    if len(sizes) > MANY:
        return (
            f"{what}: {took}; each takes its messages: try fewer, with bucket_cap_mb="
            f"{max(1, 4 * total / MB / len(sizes)):.2g}"
        )
    return (
        f"{what}: {took}; what is left is mostly the last one of {sizes[-1] / MB:.3g} MB: try "
        f"bucket_cap_mb={max(1, max(sizes) / MB / 2):.2g}, or a smaller ratio"
    )
