"""Which networks are trained by which methods, and what these are called."""

from __future__ import annotations

from typing import NamedTuple

SEEDS = (0, 1, 2)
RANKS = 2  # a core each
WIDE_RANKS = 4


class Network(NamedTuple):
    """One of the examples.

    Attributes:
        title: What it is, for people.
        epochs: Over its data.
        higher: Whether a higher score is a better one.
        within: How far from the dense score a method may be: points, or a part of it.
        relative: Whether it is a part.
        rows: Whether gradients are mostly rows of tables, whose bytes torch does not count.
    """

    title: str
    epochs: int
    higher: bool
    within: float
    relative: bool = False
    rows: bool = False


NETWORKS = {
    "fashion-mnist": Network(
        "residual network on a quarter of Fashion-MNIST", 2, True, within=0.5
    ),
    "atis": Network("LSTM tagger on ATIS", 8, False, within=0.3),
    "moby-dick": Network("word LSTM on Moby-Dick", 2, False, within=0.01, relative=True),
    "clicks": Network("recommender on made-up clicks", 2, True, within=0.5, rows=True),
}
WIDE = "atis-wide"  # for step times: 20 M parameters

NAMES = {
    "dense": "dense (DDP)",
    "fp16": "fp16 hook (torch)",
    "torch-powersgd": "PowerSGD hook, rank 4 (torch)",
    "topk": "TopK 0.5 % + 8 bit",
    "topk1": "TopK 1 % + 8 bit",
    "topk8of512": "TopK 8 of 512",
    "topk16of512": "TopK 16 of 512",
    "dgc": "DGC 0.1 % + 8 bit, warm-up",
    "qsgd": "QSGD 4 bit",
    "nuqsgd": "NUQSGD 4 bit",
    "terngrad": "TernGrad",
    "onebit": "OneBit, error feedback",
    "powersgd": "PowerSGD, rank 4 (ours)",
}
# Of the wide tagger, by ranks: what takes turns in a job, as far as time and memory go.
STEPPED = {
    WIDE_RANKS: (("dense", "topk"), ("fp16", "torch-powersgd", "qsgd")),
    8: (("dense", "topk"),),
}
# Whose first epoch is trained behind links, too: network, method, link.
CHECKED = (("moby-dick", "dense", "1gbit"), ("moby-dick", "topk1", "1gbit"))
# Who is judged over all seeds, on which network; everyone else by the first one.
ALL_SEEDS = ("dense", "topk1", "dgc", "qsgd", "terngrad", "nuqsgd", "powersgd", "onebit")
TRAINED = {
    "fashion-mnist": (*ALL_SEEDS, "fp16", "torch-powersgd", "topk8of512", "topk16of512"),
    "moby-dick": (*ALL_SEEDS, "fp16", "torch-powersgd"),
    "atis": ("dense", "topk", "fp16", "torch-powersgd"),
    "clicks": ("dense", "topk"),  # gradients that are sparse already
}


def seeds(network: str, method: str) -> tuple[int, ...]:
    """Those that a method is trained with."""
    few = network == "clicks" or method not in (*ALL_SEEDS, "topk")
    return SEEDS[:1] if few else SEEDS
