"""Claim 9: Deep Gradient Compression sends hundreds of times less without loss."""

from __future__ import annotations

from training import pages
from training.judge import scores
from training.roster import NETWORKS

from .base import Answer, Claim, Row
from .trained import part_of, result, rows_of

METHOD = "dgc"
TRAINED = ("fashion-mnist", "moby-dick")
LEAST = 200.0
RESNET_50 = 25_557_032  # values
ENTRY = 20 / 32  # of a value: 12 bits for a place among a thousand, 8 for the value


def measure() -> list[Row]:
    """Return the saved rows of `benchmarks/run_training.py`."""
    return rows_of("accuracy", (METHOD,), TRAINED)


def answer(rows: list[Row]) -> Answer:
    """Hit if all runs send 200 times fewer bytes and all scores are within tolerance."""
    judged = {n: scores(part_of(rows, "accuracy"), n) for n in TRAINED}
    found = {n: s[METHOD] for n, s in judged.items() if METHOD in s}
    few = {n: s.fewer for n, s in found.items() if s.fewer < LEAST}
    off = [n for n, s in found.items() if not s.within]
    hit = bool(found) and not few and not off
    ours = "; ".join(
        result(METHOD, n, s, relative=NETWORKS[n].relative) for n, s in found.items()
    )
    whys = []
    if few:
        whys.append(
            f"fewer than {LEAST:.0f}x over the run of {', '.join(few)}: in short runs, "
            f"the warm-up and small dense tensors count"
        )
    if off:
        whys.append(
            f"the score of {', '.join(off)} differs from the dense score by more than the "
            f"tolerance: at "
            f"0.1 % a value is sent every thousand steps on average, which is the length of these "
            f"runs; the published runs have hundreds of times more steps"
        )
    why = "; ".join(whys) or "unsent values are delayed, not lost, and so is their momentum"
    return Answer(hit, ours, why, _details(rows))


def _details(rows: list[Row]) -> str:
    small = 4 * 0.001 * ENTRY * RESNET_50 / 1e6
    tables = [
        f"{NETWORKS[n].title}:\n\n{pages.accuracy(part_of(rows, 'accuracy'), n)}"
        for n in TRAINED
    ]
    return (
        f"*By formula*: 0.1 % of ResNet-50's {RESNET_50:,} values with 12 bits per index "
        f"and 8 bits per value are {small:.2f} MB of {4 * RESNET_50 / 1e6:.0f} MB (published: "
        f"0.35 MB of 97 MB, 277x). If ranks select different indices, the sum has up to P times "
        f"more entries; the measured runs include that, the warm-up, and dense tensors.\n\n"
        f"*Measured*: " + "\n".join(tables)
    )


CLAIM = Claim(
    number=9,
    title="Deep Gradient Compression",
    text="DGC sends 277x to 608x fewer bytes without loss (ResNet-50: 97 MB -> 0.35 MB)",
    source="talks; Lin et al.",
    how="measured over full runs; sizes by formula",
    seed=0,
    cases=[()],
    measure=measure,
    answer=answer,
    figures={},
)
