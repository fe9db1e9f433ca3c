"""Claim 18: the ATIS LSTM of the talk, 0.5 % of the gradient in 8 bits."""

from __future__ import annotations

from training import pages
from training.judge import steps_at
from training.roster import WIDE, WIDE_RANKS

from .base import Answer, Claim, Row
from .trained import STEPS, judged, listed, part_of, runs_of, steps_of, tables

METHOD = "topk"
RIVALS = ("fp16", "torch-powersgd")
OURS, SPARSE = "recommended", "topk1"  # in the rows of accuracy
PUBLISHED = (2.6, 7.1)


def measure() -> list[Row]:
    """Return the saved rows of run_training.py and run_accuracy.py."""
    return steps_of((METHOD, *RIVALS), WIDE) + runs_of((OURS, SPARSE), ("atis",))


def answer(rows: list[Row]) -> Answer:
    """Hit if both speedups are reached on some link."""
    steps = part_of(rows, STEPS)
    at = {link: steps_at(steps, WIDE, WIDE_RANKS, link) for link in pages.LINKS}
    at = {link: found for link, found in at.items() if {"dense", METHOD} <= found.keys()}
    gain = {k: f["dense"].seconds / f[METHOD].seconds for k, f in at.items()}
    ceiling = {k: f["dense"].seconds / f[METHOD].compute for k, f in at.items()}
    exposed = {k: f["dense"].exposed / f[METHOD].exposed for k, f in at.items()}
    hit = max(gain.values(), default=0.0) >= PUBLISHED[1]
    parts = [
        f"{gain[k]:.2f}x at {pages.LINKS[k]} (ceiling {ceiling[k]:.2f}x, {exposed[k]:.0f}x less "
        f"exposed communication)"
        for k in at
    ]
    kept = [row for row in judged(rows) if row.method == OURS and row.multiple == 1]
    if kept:
        parts.append(f"accuracy of another method: {listed(kept)}")
    why = (
        f"speed only; {WIDE_RANKS} ranks share two cores, so that computing takes "
        f"{WIDE_RANKS // 2} times longer than on separate machines, and limits the speedup"
    )
    return Answer(hit, "; ".join(parts), why, _details(rows))


def _details(rows: list[Row]) -> str:
    return (
        f"*Emulated*, median times of a step:\n\n{pages.steps(part_of(rows, STEPS), WIDE)}\n"
        f"*Measured*, a tagger of 128 units under AdamW. There, methods with error feedback such "
        f"as TopK are not recommended; the verdict is on speed only.\n\n{tables(rows)}\n"
        f"[training.md](training.md) describes both experiments."
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
