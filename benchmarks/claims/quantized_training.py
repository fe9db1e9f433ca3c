"""Claim 6: quantized gradients make training faster and keep the accuracy, untuned."""

from __future__ import annotations

from training import pages
from training.judge import steps_at
from training.roster import NAMES, WIDE, WIDE_RANKS

from .base import Answer, Claim, Row, markdown
from .trained import STEPS, judged, listed, part_of, runs_of, steps_of, tables, unfinished

METHOD, STEPPED = "qsgd4", "qsgd"  # in the rows of accuracy, and in those of steps
RANKS = 2  # world size that all networks need; others count where they are measured
NETWORKS = ("gpt", "fashion-mnist", "moby-dick", "atis", "spam")
LEAST = 1.3  # 30 % faster


def measure() -> list[Row]:
    """Return the saved rows of run_accuracy.py and run_training.py."""
    return runs_of((METHOD,), NETWORKS) + steps_of((STEPPED,), WIDE)


def gains(rows: list[Row]) -> dict[str, float]:
    """Return the speedup of a step, by link."""
    at = {
        link: steps_at(part_of(rows, STEPS), WIDE, WIDE_RANKS, link) for link in pages.LINKS
    }
    return {
        link: found["dense"].seconds / found[STEPPED].seconds
        for link, found in at.items()
        if {"dense", STEPPED} <= found.keys()
    }


def answer(rows: list[Row]) -> Answer:
    """Hit if a step is 30 % faster on some link, and all scores are within tolerance."""
    found = [row for row in judged(rows) if row.method == METHOD and row.multiple == 1]
    done = {row.network for row in found if row.ranks == RANKS}
    missing = [name for name in NETWORKS if name not in done]
    off = [f"{row.network} on {row.ranks} ranks" for row in found if not row.within]
    faster = gains(rows)
    fast = max(faster.values(), default=0.0) >= LEAST
    parts = [f"{gain:.2f}x at {pages.LINKS[link]}" for link, gain in faster.items()]
    parts.append(listed(found))
    if missing:
        why = unfinished(missing)
    elif off:
        why = f"the difference to dense exceeds the tolerance: {', '.join(off)}"
    elif not fast:
        why = "accuracy is kept, but encoding takes as long as the links need for the saved bytes"
    else:
        why = "fewer bits, the same steps, no hyperparameter changed"
    hit = fast and not off and not missing
    return Answer(hit, "; ".join(parts), why, _details(rows, faster), not missing)


def _details(rows: list[Row], faster: dict[str, float]) -> str:
    head = ["link", f"dense step / step with {NAMES[STEPPED]}"]
    lines = [[pages.LINKS[link], f"{gain:.2f}x"] for link, gain in faster.items()]
    return (
        f"*Emulated*: an LSTM of 20 million parameters, {WIDE_RANKS} ranks on two cores "
        f"([training.md](training.md)).\n\n{markdown(head, lines)}\n*Measured*, at the learning "
        f"rates of the dense runs, x2 for comparison:\n\n{tables(rows)}"
    )


CLAIM = Claim(
    number=6,
    title="Quantized training",
    text="quantized training is 30 % to 300 % faster on 8 EC2 nodes; 4-bit QSGD keeps the "
    "accuracy with no tuning",
    source="talks on communication-efficient training",
    how="steps emulated, accuracy measured",
    seed=0,
    cases=[()],
    measure=measure,
    answer=answer,
    figures={},
)
