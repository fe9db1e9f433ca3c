"""Claim 6: quantized gradients make training faster and keep the accuracy, untuned."""

from __future__ import annotations

from training import pages
from training.judge import scores, steps_at
from training.roster import NAMES, NETWORKS, WIDE, WIDE_RANKS

from .base import Answer, Claim, Row, markdown
from .trained import part_of, result, rows_of

METHOD = "qsgd"
TRAINED = ("fashion-mnist", "moby-dick")
LEAST = 1.3  # 30 % faster


def measure() -> list[Row]:
    """Return the saved rows of `benchmarks/run_training.py`, which needs a cluster."""
    found = rows_of("accuracy", (METHOD,), TRAINED)
    return found + rows_of("steps", (METHOD,), (WIDE,))


def gains(rows: list[Row]) -> dict[str, float]:
    """Return the speedup of a step, by link."""
    at = {
        link: steps_at(part_of(rows, "steps"), WIDE, WIDE_RANKS, link)
        for link in pages.LINKS
    }
    return {
        link: found["dense"].seconds / found[METHOD].seconds
        for link, found in at.items()
        if {"dense", METHOD} <= found.keys()
    }


def answer(rows: list[Row]) -> Answer:
    """Hit if a step is 30 % faster on some link, and all scores are within tolerance."""
    judged = {n: scores(part_of(rows, "accuracy"), n) for n in TRAINED}
    found = {n: s[METHOD] for n, s in judged.items() if METHOD in s}
    faster = gains(rows)
    within = bool(found) and all(s.within for s in found.values())
    hit = within and max(faster.values(), default=0.0) >= LEAST
    parts = [f"{g:.2f}x at {pages.LINKS[link]}" for link, g in faster.items()]
    parts += [result(METHOD, n, s, relative=NETWORKS[n].relative) for n, s in found.items()]
    why = "fewer bits, the same steps, no hyper-parameter changed"
    if not within:
        why = "a score differs from the dense one by more than the tolerance"
    elif not hit:
        why = (
            "bits are saved and accuracy is kept, but ranks that share two cores need as long "
            "to encode as the links need for the saved bytes"
        )
    return Answer(hit, "; ".join(parts), why, _details(rows, faster))


def _details(rows: list[Row], faster: dict[str, float]) -> str:
    tables = [
        f"{NETWORKS[n].title}:\n\n{pages.accuracy(part_of(rows, 'accuracy'), n)}"
        for n in TRAINED
    ]
    head = ["link", f"dense step / step with {NAMES[METHOD]}"]
    lines = [[pages.LINKS[link], f"{gain:.2f}x"] for link, gain in faster.items()]
    return (
        f"*Emulated*: an LSTM of 20 million parameters, {WIDE_RANKS} ranks on two cores "
        f"([training.md](training.md)).\n\n{markdown(head, lines)}\n*Measured*: "
        + "\n".join(tables)
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
