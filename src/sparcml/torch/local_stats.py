"""Statistics of local training: rounds, traffic and time."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from ..observe.stats import html_table, text_table


@dataclass(frozen=True)
class LocalStats:
    """Statistics of one rank since the start; `since` gives the difference to earlier ones.

    Attributes:
        steps: Completed inner steps.
        exchanges: Merged exchanges: one per round and fragment.
        bytes: Bytes sent, including buffers.
        dense_bytes: Bytes that the best dense allreduce of gradients sends in as many steps:
            2 (P - 1) / P times those of the parameters in each.
        exposed: Seconds that training waited for exchanges, including the computation of the
            method.
    """

    steps: int = 0
    exchanges: int = 0
    bytes: int = 0
    dense_bytes: int = 0
    exposed: float = 0.0

    @property
    def compression_ratio(self) -> float | None:
        """Dense bytes / sent bytes; None before anything was sent."""
        return self.dense_bytes / self.bytes if self.bytes else None

    def plus(self, **amounts: float) -> LocalStats:
        """Return the statistics with amounts added."""
        return replace(self, **{k: getattr(self, k) + v for k, v in amounts.items()})

    def since(self, before: LocalStats) -> LocalStats:
        """Return the statistics after `before`."""
        return self.plus(**{f.name: -getattr(before, f.name) for f in fields(self)})

    def scalars(self) -> dict[str, float]:
        """Return means over the steps by name."""
        steps = max(1, self.steps)
        means = {"bytes": self.bytes / steps, "seconds/exposed": self.exposed / steps}
        if self.compression_ratio is not None:
            means["compression_ratio"] = self.compression_ratio
        return means

    def __str__(self) -> str:
        return text_table([("", "value"), *self._entries()])

    def _repr_html_(self) -> str:
        return html_table([("", "value"), *self._entries()])

    def _entries(self) -> list[tuple[str, str]]:
        entries = []
        for name in (*(f.name for f in fields(self)), "compression_ratio"):
            value = getattr(self, name)
            text = "-" if value is None else f"{value:,}"
            if isinstance(value, float):
                text = f"{value:.6g}"
            entries.append((name.replace("_", " "), text))
        return entries
