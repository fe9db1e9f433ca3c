"""Saved rows of the experiments, and what follows from them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from tables import newest

if TYPE_CHECKING:
    from numpy.typing import NDArray

Row = dict[str, Any]
Setting = tuple[float, int]  # learning rate, steps

NAME = "decentralized"
COMMAND = "python benchmarks/run_decentralized.py"
OVERHEAD = 1 / 5  # of a further message in flight, relative to the latency
RING, PEER, CENTRAL = "D-PSGD", "one peer", "centralized"
SMALL_NETWORK, RESIDUAL = "convergence", "resnet"  # parts with losses by step
RING_SUM, RABENSEIFNER = "ring allreduce", "Rabenseifner"


def of(rows: list[Row], part: str, **where: Any) -> list[Row]:
    """Return the rows of a part with these values."""
    return [
        row
        for row in rows
        if row["part"] == part and all(row[k] == v for k, v in where.items())
    ]


def seconds(row: Row, latency: Any, bandwidth: Any) -> NDArray[np.float64]:
    """Return the time of a step from declared costs, on any network."""
    waiting = latency * (row["rounds"] + OVERHEAD * row["messages"])
    return np.asarray(waiting + 8 / bandwidth * row["nbytes"] + row["work"])


def speedups(rows: list[Row], model: str, ranks: int, latency: Any, bandwidth: Any) -> Any:
    """Return the time of the faster allreduce divided by that of D-PSGD on a ring."""
    here = {row["method"]: row for row in of(rows, "map", model=model, ranks=ranks)}
    sums = [seconds(here[name], latency, bandwidth) for name in (RING_SUM, RABENSEIFNER)]
    return np.minimum(*sums) / seconds(here[RING], latency, bandwidth)


def load(*parts: str) -> list[Row]:
    """Return the newest rows of some parts.

    Raises:
        SystemExit: If there are none.
    """
    found = newest(NAME)
    if found is None:
        raise SystemExit(f"no rows are saved; run: {COMMAND}")
    return [row for row in found["rows"] if row["part"] in parts]


def one(rows: list[Row], part: str, **where: Any) -> Row:
    """Return the only row of a part with these values."""
    (row,) = of(rows, part, **where)
    return row


def trained(
    rows: list[Row], method: str, setting: Setting, part: str = SMALL_NETWORK
) -> Row:
    """Return the run of a method with a learning rate and a number of steps."""
    return one(rows, part, method=method, lr=setting[0], steps=setting[1])


def excess(
    rows: list[Row], method: str, setting: Setting, part: str = SMALL_NETWORK
) -> list[tuple[int, float]]:
    """Return the steps, and the loss of the mean model relative to centralized SGD, minus 1."""
    mine, base = (trained(rows, name, setting, part) for name in (method, CENTRAL))
    pairs = zip(mine["marks"], mine["mean"], base["mean"], strict=True)
    return [(step, a / b - 1) for step, a, b in pairs]


def largest_excess(
    rows: list[Row], method: str, setting: Setting, part: str = SMALL_NETWORK
) -> float:
    """Return the largest absolute excess in the second half of the steps."""
    found = excess(rows, method, setting, part)
    return max(abs(value) for step, value in found if 2 * step >= found[-1][0])


def slope(rows: list[Row], method: str, nodes: int) -> float:
    """Return the exponent of K in the error, fitted to all K of one number of nodes."""
    mine = of(rows, "rate", method=method, nodes=nodes)
    x, y = ([math.log(row[key]) for row in mine] for key in ("steps", "error"))
    return float(np.polyfit(x, y, 1)[0])


def over_centralized(rows: list[Row], nodes: int) -> list[float]:
    """Return the error of D-PSGD relative to that of centralized SGD, by increasing K."""
    pairs = zip(
        *(of(rows, "rate", method=m, nodes=nodes) for m in (RING, CENTRAL)), strict=True
    )
    return [a["error"] / b["error"] for a, b in pairs]


def steps_to(rows: list[Row], method: str, setting: Setting, loss: float) -> float:
    """Return the steps until the mean model has a loss, interpolated; infinity if never."""
    row = trained(rows, method, setting)
    steps, losses = row["marks"], row["mean"]
    for i, value in enumerate(losses):
        if value <= loss:
            if i == 0:
                return float(steps[0])
            part = (losses[i - 1] - loss) / (losses[i - 1] - value)
            return float(steps[i - 1] + part * (steps[i] - steps[i - 1]))
    return math.inf


def final_gap(rows: list[Row], method: str, bits: int, kind: str = "mean") -> float:
    """Return the loss above the minimum after the last step."""
    return float(one(rows, "compressed", method=method, bits=bits)[kind][-1])
