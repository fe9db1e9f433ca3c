"""Claim 23: the slower the network, the larger the speedup."""

from __future__ import annotations

from itertools import pairwise

from tables import markdown

from .base import Answer, Claim, Row
from .planned import one, planned

RATES = ("100gbit", "25gbit", "10gbit", "1gbit", "100mbit")
MODELS = ("resnet50", "alexnet", "asr-lstm", "gpt2")
RANKS, RATIO = 64, 0.01
METHODS = ("QSGD 4 bits", "TopK 1 %", "TopK 1 %, 8 bits")


def measure(name: str, rate: str) -> list[Row]:
    """Return all methods at a bandwidth; the latency is fixed, so that only bytes change."""
    rows = planned(name, RANKS, f"{rate},30us", RATIO)
    return [row | {"rate": rate} for row in rows]


def gains(rows: list[Row], name: str, method: str) -> list[float]:
    """Return speedups from the fastest network to the slowest."""
    return [one(rows, method, model=name, rate=rate)["speedup"] for rate in RATES]


def answer(rows: list[Row]) -> Answer:
    """Hit if every method of every model gains more at each lower bandwidth."""
    found = {(n, m): gains(rows, n, m) for n in MODELS for m in METHODS}
    hit = all(b > a for line in found.values() for a, b in pairwise(line))
    first, last = zip(*((line[0], line[-1]) for line in found.values()), strict=True)
    losing = sorted({m for (_, m), line in found.items() if line[0] <= 1})
    ours = (
        f"at 100 Gbit/s {min(first):.2f}x to {max(first):.2f}x, at 100 Mbit/s "
        f"{min(last):.1f}x to {max(last):.1f}x"
    )
    why = "saved bytes count more where a byte takes longer"
    if losing:
        why += f"; at 100 Gbit/s dense is faster than {', '.join(losing)} for some models"
    head = ["model", "method", *RATES]
    lines = [[n, m, *(f"{g:.2f}x" for g in line)] for (n, m), line in found.items()]
    details = (
        f"Estimated by `sparcml plan` for {RANKS} ranks, 30 µs of latency, without overlap, "
        f"relative to the best dense allreduce.\n\n{markdown(head, lines)}"
    )
    return Answer(hit, ours, why, details)


CLAIM = Claim(
    number=23,
    title="Slower network, larger speedup",
    text="the slower the network, the more compression gains",
    source="a talk on SparCML",
    how="modelled",
    seed=0,
    cases=[(name, rate) for name in MODELS for rate in RATES],
    measure=measure,
    answer=answer,
    figures={},
)
