"""Statistics of decentralized training: traffic, time, consensus and staleness."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from ..observe.stats import html_table, text_table

TOTALS = ("steps", "bytes", "dense_bytes", "exposed", "late_steps", "averages")


@dataclass(frozen=True)
class DecentralizedStats:
    """Statistics of one rank since the start; `since` gives the difference to earlier ones.

    Attributes:
        steps: Completed steps.
        bytes: Bytes sent in these steps, including buffers.
        dense_bytes: Bytes that the best dense allreduce of the parameters sends in as many
            steps: 2 (P - 1) / P times theirs.
        exposed: Seconds that training waited for neighbours, including the computation of the
            method.
        late_steps: Sum over the averages of `ADPSGD` of the steps between request and answer.
        averages: Averages that this rank started and that are complete; 0 for methods in which
            all ranks make the same steps.
        consensus_distance: Last result of `consensus_distance()`.
    """

    steps: int = 0
    bytes: int = 0
    dense_bytes: int = 0
    exposed: float = 0.0
    late_steps: int = 0
    averages: int = 0
    consensus_distance: float | None = None

    @property
    def compression_ratio(self) -> float | None:
        """Dense bytes / sent bytes; None before anything was sent."""
        return self.dense_bytes / self.bytes if self.bytes else None

    @property
    def staleness(self) -> float | None:
        """Mean number of steps between request and answer; None without averages."""
        return self.late_steps / self.averages if self.averages else None

    def plus(self, **amounts: float) -> DecentralizedStats:
        """Return the statistics with amounts added to the totals."""
        return replace(self, **{k: getattr(self, k) + v for k, v in amounts.items()})

    def since(self, before: DecentralizedStats | None) -> DecentralizedStats:
        """Return the statistics after `before`; the consensus distance is the current one."""
        if before is None:
            return self
        return self.plus(**{name: -getattr(before, name) for name in TOTALS})

    def scalars(self) -> dict[str, float]:
        """Return means over the steps by name."""
        steps = max(1, self.steps)
        means = {
            "bytes": self.bytes / steps,
            "seconds/exposed": self.exposed / steps,
            "compression_ratio": self.compression_ratio,
            "staleness": self.staleness,
            "consensus_distance": self.consensus_distance,
        }
        return {name: mean for name, mean in means.items() if mean is not None}

    def __str__(self) -> str:
        return text_table([("", "value"), *self._entries()])

    def _repr_html_(self) -> str:
        return html_table([("", "value"), *self._entries()])

    def _entries(self) -> list[tuple[str, str]]:
        derived = ("compression_ratio", "staleness")
        names = [f.name for f in fields(self) if f.name != "late_steps"]
        entries = []
        for name in (*names, *derived):
            value = getattr(self, name)
            text = "-" if value is None else f"{value:,}"
            if isinstance(value, float):
                text = f"{value:.6g}"
            entries.append((name.replace("_", " "), text))
        return entries
