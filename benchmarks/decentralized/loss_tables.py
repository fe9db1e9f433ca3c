"""Losses on 112 nodes in docs/decentralized.md: the small and the residual network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tables import markdown

from .convergence import SETTINGS, SMALL
from .rows import CENTRAL, RESIDUAL, SMALL_NETWORK, Row, Setting, excess, largest_excess, of

if TYPE_CHECKING:
    from collections.abc import Sequence


def convergence(rows: list[Row]) -> str:
    """Return the loss after the last step by setting, and the excess over centralized SGD."""
    constants = "; ".join(
        f"{r['rate']:.2f} after {r['after']} steps (L = {r['L']:.1f}, sigma = {r['sigma']:.1f})"
        for r in of(rows, "constants")
    )
    note = (
        f"{_size(of(rows, SMALL_NETWORK)[0])} *Distance* is the root mean square of "
        f"||x - mean of x||. The theorem's learning rate for {SMALL[1]:,} steps is "
        f"1/(2 L + sigma sqrt(K/n)): {constants}."
    )
    return f"{_losses(rows, SMALL_NETWORK, SETTINGS)}\n{note}\n"


def residual(rows: list[Row]) -> str:
    """Return the same for the residual network."""
    settings = sorted({(row["lr"], row["steps"]) for row in of(rows, RESIDUAL)})
    return (
        f"{_losses(rows, RESIDUAL, settings)}\n{_size(of(rows, RESIDUAL)[0])} One seed.\n"
    )


def _size(row: Row) -> str:
    return (
        f"{row['nodes']} nodes, {row['parameters']:,} parameters, batches of {row['batch']} per "
        f"node; the learning rate falls linearly to 0."
    )


def _losses(rows: list[Row], part: str, settings: Sequence[Setting]) -> str:
    head = ["learning rate", "steps", "method", "mean model", "vs centralized"]
    head += ["largest, second half", "single nodes", "distance between models"]
    lines = []
    for setting in settings:
        for row in of(rows, part, lr=setting[0], steps=setting[1]):
            method = row["method"]
            cells = [f"{setting[0]:g}", f"{setting[1]:,}", method, f"{row['mean'][-1]:.4f}"]
            if method == CENTRAL:
                lines.append([*cells, "", "", "", ""])
                continue
            cells.append(f"{excess(rows, method, setting, part)[-1][1]:+.2%}")
            cells.append(f"{largest_excess(rows, method, setting, part):.2%}")
            lines.append([*cells, f"{row['local'][-1]:.4f}", f"{row['distance'][-1]:.2f}"])
    return markdown(head, lines)
