"""Claim 20: speedup at scale: ResNet-50, wide ResNets, and a speech model.

The talk's ratio, 0.5 %, with 8 bits. Its networks: Aries for images, InfiniBand for speech;
10 Gbit/s in addition, where bytes decide.
"""

from __future__ import annotations

import math

from tables import markdown

from .base import Answer, Claim, Row
from .planned import one, planned
from .rare_communication import table, verdict

METHOD, CODED = "TopK 0.5 %", "TopK 0.5 %, 8 bits"
NETWORKS = ("aries", "10gbit")
WIDE = ("4xresnet18", "4xresnet34")
CASES = [
    *(("resnet50", ranks, n) for ranks in (64, 256) for n in NETWORKS),
    *((name, 64, n) for name in WIDE for n in NETWORKS),
    *(("asr-lstm", ranks, n) for ranks in (16, 128) for n in ("ib-fdr", "10gbit")),
]
LITTLE, TWICE = 1.25, (1.6, 2.5)
DAYS, THEIRS, MORE = 14.0, 1.78, 8  # at 16 ranks, at 128, and how many times as many


def measure(name: str, ranks: int, network: str) -> list[Row]:
    """Return all methods; for wide networks also the bandwidth at which the claim holds."""
    rows = planned(name, ranks, network)
    if name in WIDE:
        rows = [row | {"twice_at": twice_at(name, ranks)} for row in rows]
    return rows


def twice_at(name: str, ranks: int) -> float:
    """Return the bandwidth below which the quantized method gains 2x or more."""
    low, high = 1e8, 1e12
    while high / low > 1.01:
        rate = math.sqrt(low * high)
        row = one(planned(name, ranks, f"{rate:.0f}bit,1.5us"), CODED)
        low, high = (rate, high) if row["speedup"] >= 2 else (low, rate)
    return low


def days(row: Row, key: str = "step") -> float:
    """Return the days of the speech model at 128 ranks, if 14 days at 16 are computing alone."""
    return float(DAYS / MORE * row[key] / row["compute"])


def answer(rows: list[Row]) -> Answer:
    """Hit if each of the three sentences holds on the network of the talk."""
    narrow = [
        one(rows, METHOD, model="resnet50", ranks=ranks, network="aries")["speedup"]
        for ranks in (64, 256)
    ]
    wide = [one(rows, CODED, model=m, network="aries") for m in WIDE]
    slow = [one(rows, CODED, model=m, network="10gbit") for m in WIDE]
    speech = one(rows, CODED, model="asr-lstm", ranks=128, network="ib-fdr")
    gains = [row["speedup"] for row in wide]
    hits = [
        max(narrow) < LITTLE,
        all(TWICE[0] <= gain <= TWICE[1] for gain in gains),
        days(speech) <= 1.1 * THEIRS,
    ]
    ours = (
        f"ResNet-50 on Aries {narrow[0]:.2f}x at 64 ranks, {narrow[1]:.2f}x at 256; wide "
        f"ResNets at 64 "
        f"{gains[0]:.2f}x and {gains[1]:.2f}x on Aries, {slow[0]['speedup']:.2f}x and "
        f"{slow[1]['speedup']:.2f}x at 10 Gbit/s; speech at 128 {days(speech):.2f} days, "
        f"{days(speech, 'links'):.2f} by the links only"
    )
    return Answer(all(hits), ours, _why(hits, speech, wide), _details(rows))


def _why(hits: list[bool], speech: Row, wide: list[Row]) -> str:
    if all(hits):
        return "all three sentences hold"
    said = "ResNet-50 gains little" if hits[0] else "ResNet-50 gains more than a little"
    reasons = []
    if not hits[1]:
        reasons.append(
            "at the same batch a wide network computes longer by the factor by which it "
            "sends more, so "
            "it gains what ResNet-50 gains; 2x requires a link, or a dense allreduce, as slow as "
            f"{min(r['twice_at'] for r in wide) / 1e9:.1f} Gbit/s, not Aries at its full 80"
        )
    if not hits[2]:
        reasons.append(
            f"the speech model's batch is not published (assumed: "
            f"{speech['compute'] * 1e3:.0f} ms of computing), and one core that selects and "
            f"adds is slow compared with a GPU; {verdict()}"
        )
    return "; ".join([said, *reasons])


def _details(rows: list[Row]) -> str:
    head = ["model", "network", "P", "computing (ms)", "dense (ms)", METHOD, CODED]
    head += ["links only: " + METHOD, CODED]
    lines = []
    for name, ranks, network in CASES:
        where = {"model": name, "ranks": ranks, "network": network}
        dense, *both = [one(rows, m, **where) for m in ("dense", METHOD, CODED)]
        cells = [name, network, str(ranks), f"{dense['compute'] * 1e3:.0f}"]
        cells += [f"{dense['step'] * 1e3:.0f}", *(f"{r['speedup']:.2f}x" for r in both)]
        lines.append([*cells, *(f"{r['links_speedup']:.2f}x" for r in both)])
    return (
        "Estimated by `sparcml plan`, relative to the best dense allreduce, without overlap. Links "
        "only: selecting, encoding and adding take no time. The computing time "
        "is assumed: 32 images on a P100, 4096 frames on a V100. "
        f"The {DAYS:g} days at 16 ranks are assumed to be computing only, so {MORE} times more "
        f"ranks need at least {DAYS / MORE:.2f} days.\n\n{markdown(head, lines)}\n{table()}"
    )


CLAIM = Claim(
    number=20,
    title="Speedup at scale",
    text=(
        "ResNet-50 does not benefit at scale, wide ResNets gain about 2x at 64 ranks, and a "
        "speech LSTM takes 1.78 days on 128 GPUs instead of 14 on 16"
    ),
    source="talks on SparCML",
    how="modelled",
    seed=0,
    cases=CASES,
    measure=measure,
    answer=answer,
    figures={},
)
