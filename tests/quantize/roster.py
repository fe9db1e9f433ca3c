"""All quantizers whose mean is the value, and vectors to try them on.

Another one joins by one line, and has to keep every law in `test_laws.py`.
"""

import numpy as np

from sparcml import NUQSGD, QSGD, Natural, TernGrad

UNBIASED = [
    QSGD(2),
    QSGD(4),
    QSGD(8),
    QSGD(3, bucket=64, norm="l2"),
    QSGD(levels=5, bucket=None, norm="l2"),
    QSGD(levels=1, bucket=100),
    NUQSGD(2),
    NUQSGD(4),
    NUQSGD(8, bucket=None),
    NUQSGD(3, bucket=50),
    TernGrad(clip=None),
    Natural(),
]
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


def draws(coder, vector, trials, first=0):
    """What so many seeds give: one row each."""
    rows = np.empty((trials, vector.size))
    for seed in range(trials):
        rows[seed] = coder.decode(coder.encode(vector, first + seed))
    return rows
