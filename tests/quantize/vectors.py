"""Vectors to quantize, and repeated draws of a quantizer."""

import numpy as np

RNG = np.random.default_rng(11)
VECTORS = {
    "normal": RNG.standard_normal(300),
    "heavy": RNG.standard_t(2, 300),
    "sparse": np.where(RNG.random(300) < 0.05, RNG.standard_normal(300), 0),
    "one": np.eye(1, 300)[0] * -3,
    "same": np.full(300, 0.3),
    "worst": np.append(np.full(299, 0.01), 1),
    "scales": 10.0 ** RNG.uniform(-8, 8, 300) * RNG.choice([-1, 1], 300),
}
VECTORS = {name: v.astype(np.float32) for name, v in VECTORS.items()}


def draws(quantizer, vector, trials, first=0):
    """Return one decoded vector per seed, as rows."""
    rows = np.empty((trials, vector.size))
    for seed in range(trials):
        rows[seed] = quantizer.decode(quantizer.encode(vector, first + seed))
    return rows
