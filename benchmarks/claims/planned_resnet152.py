"""Claim 21: ResNet-152 on 1,024 nodes, ideally and with communication."""

from __future__ import annotations

from tables import markdown

from sparcml.planning.models import model

from .base import Answer, Claim, Row
from .planned import one, planned

RANKS, DAYS, THEIRS = 1024, 19.0, 25.0
IMAGES, EPOCHS, BATCH = 1_281_167, 90, 32
STEP = DAYS * 86400 / (IMAGES * EPOCHS / BATCH)  # seconds of computing
NETWORKS = ("aries", "10gbit", "gige")
METHODS = ("dense", "QSGD 4 bits", "TopK 0.1 %", "TopK 0.1 %, 8 bits", "TopK 0.1 %, oktopk")
NEAR = 0.1


def minutes(row: Row, key: str = "step") -> float:
    """Return the minutes of the training run."""
    return float(DAYS * 24 * 60 / RANKS * row[key] / row["compute"])


def answer(rows: list[Row]) -> Answer:
    """Hit if the division holds; communication is what it leaves out."""
    compute = rows[0]["compute"]
    ideal = compute * IMAGES * EPOCHS / BATCH / RANKS / 60
    on = {n: [one(rows, m, network=n) for m in METHODS] for n in NETWORKS}
    best = min(on["aries"], key=minutes)
    ours = (
        f"ideal {ideal:.1f} minutes; on Aries dense {minutes(on['aries'][0]):.0f}, best "
        f"{minutes(best):.0f} ({best['method']}); at 1 Gbit/s dense "
        f"{minutes(on['gige'][0]):.0f}, best {min(map(minutes, on['gige'])):.0f}"
    )
    why = (
        f"19 days / 1,024 are {ideal / THEIRS - 1:.0%} above the 25 minutes claimed; each "
        f"rank keeps its batch of {BATCH}, so that a step has {RANKS * BATCH:,} images, and "
        f"communication is added"
    )
    hit = abs(ideal / THEIRS - 1) <= NEAR and minutes(best) >= ideal
    return Answer(hit, ours, why, _details(rows, ideal))


def _details(rows: list[Row], ideal: float) -> str:
    head = ["method", *(f"{n} (min)" for n in NETWORKS)]
    head += [f"{n}, links only (min)" for n in NETWORKS]
    lines = []
    for method in METHODS:
        found = [one(rows, method, network=n) for n in NETWORKS]
        cells = [f"{minutes(row, key):.0f}" for key in ("step", "links") for row in found]
        lines.append([method, *cells])
    own = model("resnet152").step or 0.0
    ours = own * IMAGES * EPOCHS / BATCH
    return (
        f"Estimated by `sparcml plan` for 1,024 ranks without overlap; {EPOCHS} epochs of "
        f"{IMAGES:,} images, {BATCH} per rank and step. The computing time is taken from "
        f"the claim, "
        f"so that the ideal only verifies its division: 19 days on one node are "
        f"{STEP * 1e3:.0f} ms per step and {ideal:.1f} minutes on 1,024 nodes without "
        f"communication. "
        f"Our own assumption, a P100 at 5.5 TFLOP/s, gives {own * 1e3:.0f} ms, "
        f"{ours / 86400:.1f} days and {ours / RANKS / 60:.1f} minutes. Links only: selecting, "
        f"encoding and adding take no time.\n\n{markdown(head, lines)}"
    )


CLAIM = Claim(
    number=21,
    title="ResNet-152 on 1,024 nodes",
    text="ResNet-152 takes 19 days on one node, in theory 25 minutes on 1,024",
    source="a talk on SparCML",
    how="modelled",
    seed=0,
    cases=[("resnet152", RANKS, network, 0.001, STEP) for network in NETWORKS],
    measure=planned,
    answer=answer,
    figures={},
)
