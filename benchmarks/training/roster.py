"""Networks, methods and their names."""

from __future__ import annotations

from typing import NamedTuple

SEEDS = (0, 1, 2)
RANKS = 2  # one core each
WIDE_RANKS = 4


class Network(NamedTuple):
    """One of the examples.

    Attributes:
        title: Title.
        epochs: Number of epochs.
        higher: Whether a higher score is better.
        within: Tolerance of the score: points, or a fraction of the dense score.
        relative: Whether the tolerance is a fraction.
        rows: Whether gradients are mostly sparse rows, whose bytes torch does not count.
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
    "clicks": Network("recommender on synthetic clicks", 2, True, within=0.5, rows=True),
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
# Methods that alternate in one job of the wide tagger, by ranks.
STEPPED = {
    WIDE_RANKS: (("dense", "topk"), ("fp16", "torch-powersgd", "qsgd")),
    8: (("dense", "topk"),),
}
# First epochs that are also trained on emulated links: network, method, link.
CHECKED = (("moby-dick", "dense", "1gbit"), ("moby-dick", "topk1", "1gbit"))
# Methods that are trained with all seeds, and by network; others use the first seed.
ALL_SEEDS = ("dense", "topk1", "dgc", "qsgd", "terngrad", "nuqsgd", "powersgd", "onebit")
TRAINED = {
    "fashion-mnist": (*ALL_SEEDS, "fp16", "torch-powersgd", "topk8of512", "topk16of512"),
    "moby-dick": (*ALL_SEEDS, "fp16", "torch-powersgd"),
    "atis": ("dense", "topk", "fp16", "torch-powersgd"),
    "clicks": ("dense", "topk"),  # with sparse gradients
}


def seeds(network: str, method: str) -> tuple[int, ...]:
    """Return the seeds of a method."""
    few = network == "clicks" or method not in (*ALL_SEEDS, "topk")
    return SEEDS[:1] if few else SEEDS
