"""Distributed mean estimation: P noisy measurements of one vector, averaged.

The mean of P independent estimates has 1 / P of their variance, so the squared error over the
number of ranks is a line of slope -1 on logarithmic axes. Ranks are threads of this process.

    python examples/mean_estimation.py
"""

import numpy as np

import sparcml

SIZE, NOISE, TRIALS = 2_000, 1.0, 20
RANKS = (1, 2, 4, 8, 16)


def squared_error(ranks: int) -> float:
    """Return the squared error of the mean over the ranks, averaged over trials."""
    truth = np.random.default_rng(0).standard_normal(SIZE)

    def measure(comm: sparcml.Communicator) -> float:
        rng = np.random.default_rng([ranks, comm.rank])
        errors = []
        for _ in range(TRIALS):
            noisy = truth + NOISE * rng.standard_normal(SIZE)
            mean = comm.allreduce(noisy, op="mean")
            errors.append(np.mean((mean - truth) ** 2))
        return float(np.mean(errors))

    return sparcml.launch(measure, ranks)[0]


def main() -> None:
    """Print the errors and their slope."""
    errors = [squared_error(ranks) for ranks in RANKS]
    for ranks, error in zip(RANKS, errors, strict=True):
        print(
            f"{ranks:3d} ranks: squared error {error:.4f}, expected {NOISE**2 / ranks:.4f}"
        )
    slope = np.polyfit(np.log(RANKS), np.log(errors), 1)[0]
    print(f"slope in log-log: {slope:.2f} (theory: -1)")


if __name__ == "__main__":
    main()
