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
    """Kept rows of `benchmarks/run_training.py`, which takes a cluster."""
    steps = rows_of("steps", (METHOD, *RIVALS), (WIDE,))
    return steps + rows_of("accuracy", (METHOD,), ("atis",))


def answer(rows: list[Row]) -> Answer:
    """Hit if both gains are reached on some link, and the slot error is that of dense runs."""
    steps = part_of(rows, "steps")
    at = {link: steps_at(steps, WIDE, WIDE_RANKS, link) for link in pages.LINKS}
    at = {link: found for link, found in at.items() if {"dense", METHOD} <= found.keys()}
    gain = {k: f["dense"].seconds / f[METHOD].seconds for k, f in at.items()}
    ceiling = {k: f["dense"].seconds / f[METHOD].compute for k, f in at.items()}
    exposed = {k: f["dense"].exposed / f[METHOD].exposed for k, f in at.items()}
    judged = scores(part_of(rows, "accuracy"), "atis")
    hit = max(gain.values()) >= PUBLISHED[1] and judged[METHOD].within
    ours = "; ".join(
        f"{gain[k]:.2f}x at {pages.LINKS[k]} (ceiling {ceiling[k]:.2f}x, exposed "
        f"communication {exposed[k]:.0f}x less)"
        for k in at
    )
    ours += (
        f"; slot error {judged[METHOD].score:.2f} % against {judged['dense'].score:.2f} %, "
        f"{judged[METHOD].seeds} seeds"
    )
    why = (
        f"{WIDE_RANKS} ranks share two cores, so computing takes {WIDE_RANKS // 2} times what "
        f"it would on machines of their own, and bounds what can be gained"
    )
    if not judged[METHOD].within:
        why = f"the slot error is further from the dense one than allowed; {why}"
    return Answer(hit, ours, why, _details(rows))


def _details(rows: list[Row]) -> str:
    return (
        f"*Emulated*, medians of a step:\n\n{pages.steps(part_of(rows, 'steps'), WIDE)}\n"
        f"*Measured*, with the published width of 300 units:\n\n"
        f"{pages.accuracy(part_of(rows, 'accuracy'), 'atis')}\n"
        f"[training.md](training.md) says how."
    )


CLAIM = Claim(
    number=18,
    title="The ATIS LSTM",
    text="an LSTM on ATIS trains 2.6x and 7.1x faster on 8 nodes, with 0.5 % of the gradient "
    "in 8 bits",
    source="talk on SparCML",
    how="steps emulated, accuracy measured",
    seed=0,
    cases=[()],
    measure=measure,
    answer=answer,
    figures={},
)
