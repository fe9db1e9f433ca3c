"""Claim 18: the ATIS LSTM of the talk, 0.5 % of the gradient in 8 bits."""

from __future__ import annotations

from training import pages
from training.judge import scores, steps_at
from training.roster import WIDE, WIDE_RANKS

from .base import Answer, Claim, Row
from .trained import part_of, rows_of

METHOD = "topk"
RIVALS = ("fp16", "torch-powersgd")
PUBLISHED = (2.6, 7.1)


def measure() -> list[Row]:
    """Return the saved rows of `benchmarks/run_training.py`, which needs a cluster."""
    steps = rows_of("steps", (METHOD, *RIVALS), (WIDE,))
    return steps + rows_of("accuracy", (METHOD,), ("atis",))


def answer(rows: list[Row]) -> Answer:
    """Hit if both speedups are reached on some link, and the slot error is within tolerance."""
    steps = part_of(rows, "steps")
    at = {link: steps_at(steps, WIDE, WIDE_RANKS, link) for link in pages.LINKS}
    at = {link: found for link, found in at.items() if {"dense", METHOD} <= found.keys()}
    gain = {k: f["dense"].seconds / f[METHOD].seconds for k, f in at.items()}
    ceiling = {k: f["dense"].seconds / f[METHOD].compute for k, f in at.items()}
    exposed = {k: f["dense"].exposed / f[METHOD].exposed for k, f in at.items()}
    judged = scores(part_of(rows, "accuracy"), "atis")
    hit = max(gain.values()) >= PUBLISHED[1] and judged[METHOD].within
    ours = "; ".join(
        f"{gain[k]:.2f}x at {pages.LINKS[k]} (ceiling {ceiling[k]:.2f}x, {exposed[k]:.0f}x less "
        f"exposed communication)"
        for k in at
    )
    ours += (
        f"; slot error {judged[METHOD].score:.2f} %, dense {judged['dense'].score:.2f} %, "
        f"{judged[METHOD].seeds} seeds"
    )
    why = (
        f"{WIDE_RANKS} ranks share two cores, so that computing takes {WIDE_RANKS // 2} times "
        f"longer than on separate machines, and limits the speedup"
    )
    if not judged[METHOD].within:
        why = f"the slot error differs from the dense one by more than the tolerance; {why}"
    return Answer(hit, ours, why, _details(rows))


def _details(rows: list[Row]) -> str:
    return (
        f"*Emulated*, median times of a step:\n\n{pages.steps(part_of(rows, 'steps'), WIDE)}\n"
        f"*Measured*, with the published width of 300 units:\n\n"
        f"{pages.accuracy(part_of(rows, 'accuracy'), 'atis')}\n"
        f"[training.md](training.md) describes the method."
    )


CLAIM = Claim(
    number=18,
    title="The ATIS LSTM",
    text="an LSTM on ATIS trains 2.6x and 7.1x faster on 8 nodes, with 0.5 % of the gradient "
    "in 8 bits",
    source="a talk on SparCML",
    how="steps emulated, accuracy measured",
    seed=0,
    cases=[()],
    measure=measure,
    answer=answer,
    figures={},
)
