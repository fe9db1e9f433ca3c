"""Networks, methods and their names."""

from __future__ import annotations

RANKS = 2  # one core each
WIDE_RANKS = 4

NETWORKS = {
    "fashion-mnist": "residual network on Fashion-MNIST",
    "atis": "LSTM tagger on ATIS",
    "moby-dick": "word LSTM on Moby-Dick",
    "clicks": "recommender on synthetic clicks",
}
WIDE = "atis-wide"  # 20 M parameters

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
# Methods that alternate in one job of the other networks.
_MOST = ("dense", "topk1", "dgc", "qsgd", "terngrad", "nuqsgd", "powersgd", "onebit")
ALTERNATING = {
    "fashion-mnist": (*_MOST, "fp16", "torch-powersgd", "topk8of512", "topk16of512"),
    "moby-dick": (*_MOST, "fp16", "torch-powersgd"),
    "atis": ("dense", "topk", "fp16", "torch-powersgd"),
    "clicks": ("dense", "topk"),  # with sparse gradients
}
