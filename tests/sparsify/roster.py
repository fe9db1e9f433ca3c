"""Every sparsifier, in the forms that differ; a new one joins by a line."""

import numpy as np

import sparcml

ROSTER = {
    "TopK ratio": sparcml.TopK(0.02),
    "TopK k": sparcml.TopK(k=7),
    "TopK all": sparcml.TopK(1.0),
    "TopK bucket": sparcml.TopK(k=4, bucket=512),
    "TopK ragged bucket": sparcml.TopK(0.1, bucket=100),
    "RandomK": sparcml.RandomK(0.02),
    "RandomK unscaled": sparcml.RandomK(0.02, scaled=False),
    "RandomK most": sparcml.RandomK(0.9, scaled=False, shared=True),
    "Threshold": sparcml.Threshold(2.0),
    "Threshold adaptive": sparcml.Threshold(ratio=0.02),
    "Threshold strom": sparcml.Threshold(2.0, strom=True),
    "Blocks": sparcml.Blocks(0.05, block=8),
    "Blocks k": sparcml.Blocks(k=3, block=7),
}
EXACT = [n for n in ROSTER if n not in {"RandomK", "Threshold strom"}]  # send what is owed
SIZES = (0, 1, 7, 8, 63, 64, 65, 512, 1000, 20_000)


def gradient(seed: int, size: int, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(size).astype(dtype)


def norm2(x) -> float:
    return float(np.sum(np.square(np.asarray(x, np.float64))))
